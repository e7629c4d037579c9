//! Tokens and grams of texts in several scripts, beside the tokens alone of the library for word boundaries.
//!
//! ```text
//! cargo bench -p bloomline-benches --bench text
//! ```

use bloomline::{BloomFilter, KeyHasher};
use bloomline_benches::smoke;
use bloomline_benches::turns::best;
use bloomline_text::{Rules, Texts, words};
use std::hint::black_box;

/// Words, what stands between two, and what ends a sentence.
struct Script {
    name: &'static str,
    words: &'static str,
    space: &'static str,
    stop: &'static str,
}

const ENGLISH: Script = Script {
    name: "English",
    words: "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which \
            one you were her all their there been has when who will more no out so said what up its about into than them can \
            only other new some could time these two may then do first any my now such like our over man me even most made \
            after also did many before must through back years where much your way well down should because each just those \
            people how too little state good very make world still own see men work long get here between both life being under \
            never day same another know while last might us great old year off come since against go came right used take three \
            government information development university international department understanding nevertheless it's don't",
    space: " ",
    stop: ".",
};
const SCRIPTS: [Script; 7] = [
    Script {
        name: "French",
        words: "le de un être et à il avoir ne je son que se qui ce dans en du elle au pour pas par plus vous nous même déjà \
                été très après où père mère première général l'état d'une société",
        space: " ",
        stop: ".",
    },
    Script {
        name: "Russian",
        words: "и в не на я быть он с что а по это она этот к но они мы весь который из у то за свой человек год",
        space: " ",
        stop: ".",
    },
    Script {
        name: "Arabic",
        words: "من في على إلى عن مع هذا التي الذي كان بعد قبل كل يوم مدينة العالم الدولة اللُّغَة",
        space: " ",
        stop: ".",
    },
    Script {
        name: "Chinese",
        words: "的 我们 中国 人民 大学 研究 一个 没有 可以 发展 经济 世界 问题 是 在 了",
        space: "",
        stop: "。",
    },
    Script {
        name: "Japanese",
        words: "日本 の は です テレビ という こと 東京 コンピューター する された ところ 人々 が を",
        space: "",
        stop: "。",
    },
    Script {
        name: "Thai", words: "ที่ และ เป็น ของ ไม่ ได้ ประเทศ ภาษาไทย น้ำ ผู้ใหญ่ กรุงเทพ", space: "", stop: " "
    },
    Script { name: "emoji", words: "😀 👍🏽 👩‍👩‍👧 🇩🇪 ❤️ 🎉 🚀", space: "", stop: " " },
];

fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// Paragraphs of some 40 words, about this number of bytes: `share` percent of the words are of the script, the others are English.
fn text(script: &Script, share: usize, bytes: usize) -> String {
    let lists = [&ENGLISH, script].map(|script| (script, script.words.split_whitespace().collect::<Vec<_>>()));
    let (mut text, mut state) = (String::new(), 1);
    let mut in_script = false;
    while text.len() < bytes {
        for word in 1..=40 {
            // Some words in a row are of one script.
            if word % 4 == 1 {
                in_script = random(&mut state) % 100 < share;
            }
            let (script, words) = &lists[usize::from(in_script)];
            text += words[random(&mut state) % words.len()];
            if random(&mut state).is_multiple_of(10) {
                text += script.stop;
            }
            text += script.space;
        }
        text += "\n";
    }
    text
}

/// Documents of 16 paragraphs.
fn documents(text: &str) -> Vec<String> {
    let paragraphs: Vec<&str> = text.split_inclusive('\n').collect();
    paragraphs.chunks(16).map(|paragraphs| paragraphs.concat()).collect()
}

fn main() {
    let (bytes, rounds) = if smoke() { (10_000, 1) } else { (1_000_000, 15) };
    let rules = Rules::default();
    let hasher = KeyHasher::new(0);
    let mut texts = Texts::default();
    println!("text                 bytes/token   tokens and grams          the library's tokens");
    let mixtures = SCRIPTS.iter().flat_map(|script| [10, 50, 100].map(|share| (script, share)));
    for (script, share) in [(&ENGLISH, 0)].into_iter().chain(mixtures) {
        let text = text(script, share, bytes);
        let tokens = words(&text).count() as f64;
        let documents = documents(&text);
        let (ours, ()) = best(rounds, || {
            for document in &documents {
                texts.clear();
                texts.push(&rules, &hasher, document.as_bytes());
                black_box(texts.grams());
            }
        });
        let (library, _) = best(rounds.min(3), || words(&text).count());
        let figures = |time: f64| {
            format!(
                "{:6.2} ns {:6.2} ns/B {:6.0} MB/s",
                time / tokens,
                time / text.len() as f64,
                text.len() as f64 * 1e3 / time
            )
        };
        let name = format!("{} {share} %", script.name);
        println!("{name:20} {:6.2}  {}  {}", text.len() as f64 / tokens, figures(ours), figures(library));
    }

    let text = text(&ENGLISH, 0, bytes);
    let documents = documents(&text);
    for memory in if smoke() { vec![1 << 16] } else { vec![1 << 20, 100 << 20] } {
        for words in [13, 1] {
            let mut rules = Rules::default();
            rules.min_ngram = words;
            let mut filter: BloomFilter = BloomFilter::builder().memory(memory).probes(8).build().unwrap();
            filter.populate();
            let (mut grams, mut seed) = (0, 0);
            let mut run = |decide: bool| {
                best(rounds, || {
                    grams = 0;
                    seed += 1;
                    // Another hasher makes other grams.
                    let hasher = KeyHasher::new(seed);
                    for document in &documents {
                        texts.clear();
                        texts.push(&rules, &hasher, document.as_bytes());
                        grams += texts.grams();
                        if decide {
                            texts.decide(&rules, &mut filter).unwrap();
                        }
                    }
                })
            };
            let ((alone, ()), (decided, ())) = (run(false), run(true));
            println!(
                "filter of {memory} bytes: {:.2} ns a gram to decide and insert",
                (decided - alone) / grams as f64
            );
        }
    }
}

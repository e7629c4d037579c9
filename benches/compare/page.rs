//! The HTML page. It refers to no other file, and can be read on a phone and in dark mode too.

use super::paint::{COLOURS, Medium};
use super::plots::{self, Plot};
use super::recommendation::{Recommendation, recommendations};
use super::result::Comparison;
use super::text::{Table, escaped, facts, notes, tables, units};

const STYLE: &str = "\
*{box-sizing:border-box}\
body{margin:0 auto;padding:1rem;max-width:84rem;font:1rem/1.5 system-ui,sans-serif;background:var(--background);color:var(--text)}\
h1{font-size:1.5rem;line-height:1.2}h2{font-size:1.15rem;margin:2rem 0 .5rem}figure h2{margin-top:0}\
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem 1rem;font-size:.9rem}\
dt{color:var(--mark)}dd{margin:0;overflow-wrap:anywhere}\
.verdict{max-width:60rem;padding-left:0;list-style:none}.verdict li{margin:.4rem 0}.legend{max-width:36rem}\
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:2rem;align-items:start}\
@media(min-width:64rem){#speed{grid-row:span 2}}\
figure{margin:0;min-width:0}figcaption{font-size:.95rem}\
svg{display:block;width:100%;height:auto}\
.table{overflow-x:auto;margin:0 0 1.5rem}\
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums;white-space:nowrap}\
caption{text-align:left;font-weight:600;padding:.3rem 0}\
th,td{text-align:right;padding:.15rem .6rem;border-bottom:1px solid var(--grid)}\
th:first-child,td:first-child{text-align:left;padding-left:0;position:sticky;left:0;background:var(--background)}\
.notes{font-size:.9rem;max-width:60rem;overflow-wrap:anywhere}";

/// The whole page.
pub fn page(comparison: &Comparison) -> String {
    let plots: String = plots::all(comparison).iter().map(figure).collect();
    let facts: String = facts(comparison)
        .iter()
        .map(|(label, fact)| format!("<dt>{}</dt><dd>{}</dd>\n", escaped(label), escaped(fact)))
        .collect();
    let tables: String = tables(comparison).iter().map(table).collect();
    let recommendations: String = recommendations(comparison)
        .iter()
        .map(|Recommendation { job, best }| format!("<li><strong>{job}</strong><br>{}</li>\n", escaped(best)))
        .collect();
    let notes: String = notes(comparison).iter().map(|note| format!("<li>{}</li>\n", escaped(note))).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Bloom filters compared</title>\n<style>{}{STYLE}</style>\n</head>\n<body>\n\
         <h1>Bloom filters compared</h1>\n\
         <p>The filters of <a href=\"https://github.com/bloomline/bloomline\">bloomline</a> and of other crates. The\n\
         <a href=\"calculator.html\">calculator</a> has their sizes and rates.</p>\n<h2>Which filter for which job</h2>\n<ul class=\"verdict\">\n{recommendations}</ul>\n\
         <h2>Plots</h2>\n<p class=\"notes\">A colour is a layout in all plots. Solid lines are batches; dashed and dotted lines are a \
         call for each key. Peers have the colour of the layout that they implement; other Bloom filters are grey, and filters of \
         fingerprints have the colour of the text.</p>\n<div class=\"legend\">{legend}</div>\n<div class=\"plots\">\n{plots}</div>\n\
         <h2>Figures</h2>\n<p class=\"notes\">{units}</p>\n{tables}<h2>Method</h2>\n<dl>\n{facts}</dl>\n<ul class=\"notes\">\n{notes}\
         </ul>\n</body>\n</html>",
        variables(),
        legend = plots::legend_of_all(comparison),
        units = escaped(&units(comparison)),
    )
}

fn figure(plot: &Plot) -> String {
    let Plot { name, title, caption, .. } = plot;
    let (svg, caption) = (plot.svg(Medium::Page), escaped(caption));
    format!("<figure id=\"{name}\">\n<h2>{title}</h2>\n{svg}<figcaption>{caption}</figcaption>\n</figure>\n")
}

fn table(table: &Table) -> String {
    let row = |(i, cells): (usize, &Vec<String>)| {
        let tag = if i == 0 { "th" } else { "td" };
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = table.rows.iter().enumerate().map(row).collect();
    // With a tab index, the keyboard can scroll it.
    format!(
        "<div class=\"table\" tabindex=\"0\"><table>\n<caption>{}</caption>\n{rows}</table></div>\n",
        escaped(&table.title)
    )
}

/// The colours as CSS variables, in light and in dark mode.
fn variables() -> String {
    let (light, dark): (String, String) =
        COLOURS.iter().map(|(name, light, dark)| (format!("--{name}:{light};"), format!("--{name}:{dark};"))).unzip();
    format!(":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}")
}

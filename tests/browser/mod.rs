//! Chromium, for tests that look at a page.

use serde_json::Value;
use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

/// Returns the JSON that a page has written into its plain `<pre>` once it is loaded. `None` where Chromium cannot be run and
/// `BLOOMLINE_REQUIRE_BROWSER=1` does not require it. The test is then skipped.
pub fn report(page: &Path) -> Option<Value> {
    let profile = tempfile::tempdir().unwrap();
    let mut chromium = Command::new("chromium");
    chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]);
    chromium.args(["--disable-component-update", "--disable-sync", "--no-first-run", "--dump-dom"]);
    chromium.arg(format!("--user-data-dir={}", profile.path().display())).arg(format!("file://{}", page.display()));
    let output = match chromium.output() {
        Ok(output) => output,
        Err(error) => {
            assert!(env::var_os("BLOOMLINE_REQUIRE_BROWSER").is_none_or(|value| value != "1"), "chromium: {error}");
            // The harness keeps what `eprintln!` says of a test that passes.
            _ = writeln!(io::stderr(), "skipped, and counted as passed: chromium cannot be run: {error}");
            return None;
        }
    };
    let dom = String::from_utf8(output.stdout).unwrap();
    let (_, report) = dom.split_once("<pre>").unwrap_or_else(|| panic!("no report: {dom:?}"));
    let (report, _) = report.split_once("</pre>").unwrap();
    let report = report.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Some(serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {report:?}")))
}

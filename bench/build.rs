//! Builds the smallest child for Windows (`peers/tiny.c`), where mingw's compiler is. Elsewhere the file is empty, and
//! the benchmark says so when it is asked for that child.

use std::env;
use std::path::Path;
use std::process::Command;

const COMPILER: &str = "x86_64-w64-mingw32-gcc";

fn main() {
    println!("cargo::rerun-if-changed=peers/tiny.c");
    if env::var("CARGO_CFG_WINDOWS").is_err() {
        return;
    }
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("tiny.exe");
    let built = Command::new(COMPILER)
        .args(["-O2", "-nostdlib", "-s", "-Wl,-e,begin", "peers/tiny.c", "-lkernel32", "-o"])
        .arg(&out)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("cargo::warning={COMPILER} is not there: haft-bench comes without its smallest child");
        std::fs::write(&out, []).expect("OUT_DIR can be written to");
    }
}

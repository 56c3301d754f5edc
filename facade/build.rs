//! Compresses the files of the console, and records the version of the compiler.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Folder with the files of the console.
const FOLDER: &str = "console";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let compiler = Command::new(env::var("RUSTC")?).arg("--version").output()?;
    println!("cargo::rustc-env=PORTICO_COMPILER={}", String::from_utf8(compiler.stdout)?.trim());
    let out = env::var("OUT_DIR")?;
    for entry in fs::read_dir(FOLDER)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).ok_or("a file without a name")?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        if name.ends_with(".js") {
            encoder.write_all(strip_comments(&fs::read_to_string(&path)?).as_bytes())?;
        } else {
            encoder.write_all(&fs::read(&path)?)?;
        }
        fs::write(Path::new(&out).join(format!("{name}.gz")), encoder.finish()?)?;
    }
    Ok(())
}

/// Removes comment lines, blank lines and indentation, which are about a tenth of the compressed scripts. Template literals must
/// not span several lines.
fn strip_comments(script: &str) -> String {
    let code = script.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("//"));
    code.flat_map(|line| [line, "\n"]).collect()
}

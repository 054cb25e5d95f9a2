//! Tells the compiler whether the weights of the encoder are there to be included.

fn main() {
    let weights = "weights/encoder.bin";
    println!("cargo::rerun-if-changed={weights}");
    println!("cargo::rustc-check-cfg=cfg(has_encoder)");
    let is_wanted = std::env::var_os("CARGO_FEATURE_DEEP").is_some();
    if is_wanted && std::path::Path::new(weights).exists() {
        println!("cargo::rustc-cfg=has_encoder");
    }
}

//! Compiles the protocol buffers without protoc and keeps the descriptor set for reflection.

use std::{env, fs, io, path::PathBuf};

use prost::Message;

const FILES: [&str; 9] = [
    "portico/admin/v1/admin.proto",
    "portico/apiextensions/v1/apiextensions.proto",
    "portico/apiregistration/v1/apiregistration.proto",
    "portico/catalog/v1/catalog.proto",
    "portico/config/v1/config.proto",
    "portico/history/v1/history.proto",
    "portico/identity/v1/identity.proto",
    "portico/objects/v1/objects.proto",
    "portico/routes/v1/routes.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"]).map_err(io::Error::other)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        // `Objects.Connect` would clash with the generated `connect`; channels are made in `client`.
        .build_transport(false)
        .codec_path("crate::codec::Codec")
        // Bodies are shared, not copied, between the wire, the registry and HTTP.
        .bytes(".portico.objects.v1")
        .bytes(".portico.catalog.v1")
        .bytes(".portico.history.v1")
        .bytes(".portico.config.v1.TrustBundle")
        .compile_fds(descriptors)?;
    // Spoken to others, not offered: not in the descriptors.
    let foreign = protox::compile(["externaljwt/v1/api.proto", "kms/v2/api.proto"], ["proto"])
        .map_err(io::Error::other)?;
    tonic_prost_build::configure()
        .build_transport(false)
        .codec_path("crate::codec::Codec")
        .compile_fds(foreign)?;
    Ok(())
}

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

/// Messages with a JSON encoding, for the facade and the command line.
#[cfg(feature = "json")]
const JSON: [&str; 12] = [
    ".portico.apiextensions.v1",
    ".portico.config.v1.Certificate",
    ".portico.config.v1.Facade",
    ".portico.config.v1.FacadesRequest",
    ".portico.config.v1.FacadesResponse",
    ".portico.config.v1.Load",
    ".portico.config.v1.Refusal",
    ".portico.config.v1.Version",
    ".portico.config.v1.WatchFacadesRequest",
    ".portico.config.v1.WatchFacadesResponse",
    ".portico.history.v1",
    ".portico.routes.v1",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"]).map_err(io::Error::other)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let encoded = descriptors.encode_to_vec();
    fs::write(out.join("descriptors.bin"), &encoded)?;
    #[cfg(feature = "json")]
    pbjson_build::Builder::new()
        .register_descriptors(&encoded)?
        .emit_fields()
        .ignore_unknown_enum_variants()
        .build(&JSON)?;
    generator()
        // Shares bodies between gRPC, the registry and HTTP without copies.
        .bytes(".portico.objects.v1")
        .bytes(".portico.catalog.v1")
        .bytes(".portico.history.v1")
        .bytes(".portico.config.v1.TrustBundle")
        .compile_fds(descriptors)?;
    // Portico is a client of these APIs and does not serve them, so they are not in the descriptors.
    let foreign = protox::compile(["externaljwt/v1/api.proto", "kms/v2/api.proto"], ["proto"])
        .map_err(io::Error::other)?;
    generator().compile_fds(foreign)?;
    Ok(())
}

/// Configures the generated code so that additions to the contract do not break clients: server traits, which every new call
/// extends, need a separate feature, and enums are non-exhaustive. Portico's programs are built from the same revision and match
/// all variants.
fn generator() -> tonic_prost_build::Builder {
    tonic_prost_build::configure()
        // `Objects.Connect` would clash with the generated `connect`; channels are made in `client`.
        .build_transport(false)
        .codec_path("crate::codec::Codec")
        .server_mod_attribute(".", r#"#[cfg(feature = "server")]"#)
        .enum_attribute(".", r#"#[cfg_attr(not(feature = "conversions"), non_exhaustive)]"#)
}

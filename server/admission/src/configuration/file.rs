//! The file: `AdmissionConfiguration`, which contains or refers to the configuration of each plugin, and the two older formats.

use std::path::{Path, PathBuf};

use portico_gostd::os::error_text;
use portico_kit::config_file;
use portico_machinery::Object;
use portico_schema::Format;

use super::error::ConfigurationError;
use crate::configuration_kinds::{ConfigKind, PluginConfigurationError, Scheme, decode_untagged};
use crate::enabled_plugins::EnabledPlugins;

const KIND: &str = "AdmissionConfiguration";
const SCHEME: Scheme = Scheme {
    kinds: &[
        ConfigKind { version: "apiserver.config.k8s.io/v1", kind: KIND, ty: KIND },
        ConfigKind { version: "apiserver.config.k8s.io/v1alpha1", kind: KIND, ty: KIND },
    ],
    types: r#"{
        "AdmissionConfiguration": {"fields": {
            "kind": {"type": "string"}, "apiVersion": {"type": "string"},
            "plugins": {"type": "[]AdmissionPluginConfiguration"}
        }},
        "AdmissionPluginConfiguration": {"fields": {
            "name": {"type": "string"}, "path": {"type": "string"}, "configuration": {"type": "any"}
        }}
    }"#,
    strict: true,
};

/// Plugins whose configuration once had its own file format, and the field that identifies the format. Such a file can
/// replace the whole file.
const LEGACY: [(&str, &str); 2] =
    [("ImagePolicyWebhook", "imagePolicy"), ("PodNodeSelector", "podNodeSelectorPluginConfig")];
const LEGACY_TYPES: &str = r#"{"Legacy": {"fields": {
    "imagePolicy": {"type": "any"}, "podNodeSelectorPluginConfig": {"type": "any"}
}}}"#;

/// Sections of the file, by plugin.
pub(super) struct Sections<'a> {
    plugins: &'a EnabledPlugins,
    /// Sections in order; the first one counts if a plugin has several.
    sections: Vec<(String, SectionSource)>,
}

/// Location of the configuration of a plugin.
enum SectionSource {
    Inline(Vec<u8>),
    File(PathBuf),
    Absent,
}

impl<'a> Sections<'a> {
    /// Reads the file, if one is given.
    pub(super) fn read(path: Option<&Path>, plugins: &'a EnabledPlugins) -> Result<Self, ConfigurationError> {
        let Some(path) = path else { return Ok(Self { plugins, sections: Vec::new() }) };
        let bytes = config_file::read(path).map_err(|error| ConfigurationError::File {
            path: path.display().to_string(),
            reason: format!("open {}: {}", path.display(), error_text(&error)),
        })?;
        let sections = match SCHEME.decode(&bytes) {
            Ok(object) => sections(&object, path.parent().unwrap_or(Path::new(""))),
            Err(error) if is_legacy(&error, &bytes) => {
                let section =
                    |(plugin, _): (&str, _)| (plugin.to_owned(), SectionSource::File(path.to_owned()));
                LEGACY.map(section).into()
            }
            Err(error) => return Err(ConfigurationError::Decode(error)),
        };
        Ok(Self { plugins, sections })
    }

    /// Reads the section of a plugin, if the plugin is enabled.
    pub(super) fn section<T>(
        &self,
        plugin: &'static str,
        into: &mut T,
        read: impl Fn(Option<&[u8]>) -> Result<T, PluginConfigurationError>,
    ) -> Result<(), ConfigurationError> {
        if !self.plugins.has(plugin) {
            return Ok(());
        }
        let section = self.sections.iter().find(|(name, _)| name == plugin).map(|(_, source)| source);
        let bytes = match section {
            None | Some(SectionSource::Absent) => None,
            Some(SectionSource::Inline(bytes)) => Some(bytes.clone()),
            Some(SectionSource::File(path)) => Some(config_file::read(path).map_err(|error| {
                let path = path.display().to_string();
                ConfigurationError::Path { path, reason: error_text(&error) }
            })?),
        };
        *into = read(bytes.as_deref()).map_err(|error| ConfigurationError::Plugin { plugin, error })?;
        Ok(())
    }
}

/// Returns the sections of a configuration file; relative paths refer to `folder`.
fn sections(object: &Object, folder: &Path) -> Vec<(String, SectionSource)> {
    let section = |plugin: portico_machinery::Cursor<'_>| {
        let (inline, path) = (plugin.field("configuration"), plugin.field("path").str());
        let source = match (inline.is_present(), path) {
            (true, _) => SectionSource::Inline(inline.json().into_bytes()),
            (false, "") => SectionSource::Absent,
            (false, path) => SectionSource::File(folder.join(path)),
        };
        (plugin.field("name").str().to_owned(), source)
    };
    object.at(&["plugins"]).items().map(section).collect()
}

/// True if a file of an unknown kind has one of the older formats.
fn is_legacy(error: &PluginConfigurationError, bytes: &[u8]) -> bool {
    let of_no_kind = matches!(
        error,
        PluginConfigurationError::Missing { .. } | PluginConfigurationError::NotRegistered { .. }
    );
    let has = |object: Object| LEGACY.iter().any(|(_, field)| object.at(&[field]).is_present());
    of_no_kind && decode_untagged(LEGACY_TYPES, "Legacy", bytes, Format::Yaml).is_ok_and(has)
}

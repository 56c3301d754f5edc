//! Enabled plugins as set by flags (upstream's `AdmissionOptions`).

use crate::enabled_plugins::EnabledPlugins;
use crate::plugins::{PLUGINS, Row};

/// Invalid plugin names in flags, with upstream's messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginNameError {
    /// No plugin has this name.
    #[error("plugin {} is unknown", portico_gostd::strconv::quote(.0))]
    Unknown(String),
    /// Plugins that are both enabled and disabled.
    #[error("[{}] in enable-admission-plugins and disable-admission-plugins overlapped", _0.join(" "))]
    Overlapped(Vec<String>),
}

impl Default for EnabledPlugins {
    /// Returns the plugins that are enabled without flags.
    fn default() -> Self {
        Self::from_rows(|row| row.on_by_default)
    }
}

impl EnabledPlugins {
    /// Checks the names in the value of one flag.
    ///
    /// # Errors
    /// [`PluginNameError::Unknown`] for the first unknown name.
    pub fn check_names(names: &[String]) -> Result<(), PluginNameError> {
        let is_known = |name: &&String| PLUGINS.iter().any(|row| row.name == **name);
        match names.iter().find(|name| !is_known(name)) {
            Some(name) => Err(PluginNameError::Unknown(name.clone())),
            None => Ok(()),
        }
    }

    /// Returns the default plugins, plus the plugins in `enable` and minus those in `disable`.
    ///
    /// # Errors
    /// [`PluginNameError`] for names that are unknown or in both lists.
    pub fn from_flags(enable: &[String], disable: &[String]) -> Result<Self, PluginNameError> {
        Self::check_names(enable)?;
        Self::check_names(disable)?;
        let mut both: Vec<String> = enable.iter().filter(|name| disable.contains(name)).cloned().collect();
        if !both.is_empty() {
            both.sort_unstable();
            both.dedup();
            return Err(PluginNameError::Overlapped(both));
        }
        let lists = |names: &[String], row: &Row| names.iter().any(|name| name == row.name);
        Ok(Self::from_rows(|row| lists(enable, row) || row.on_by_default && !lists(disable, row)))
    }

    /// Enables exactly the named plugins (upstream's deprecated `--admission-control`).
    ///
    /// # Errors
    /// [`PluginNameError::Unknown`].
    pub fn only(names: &[String]) -> Result<Self, PluginNameError> {
        Self::check_names(names)?;
        Ok(Self::from_rows(|row| names.iter().any(|name| name == row.name)))
    }

    fn from_rows(is_on: impl Fn(&Row) -> bool) -> Self {
        Self(PLUGINS.iter().filter(|row| is_on(row)).map(|row| row.name).collect())
    }

    /// Returns the rows of the enabled plugins, in order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &'static Row> {
        const ROWS: &[Row] = &PLUGINS;
        ROWS.iter().filter(|row| self.has(row.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn flags_turn_plugins_on_and_off() {
        let plugins =
            EnabledPlugins::from_flags(&names(&["AlwaysDeny"]), &names(&["Priority", "AlwaysAdmit"]));
        let plugins = plugins.unwrap();
        assert!(plugins.has("AlwaysDeny") && plugins.has("LimitRanger"));
        assert!(!plugins.has("Priority") && !plugins.has("AlwaysAdmit") && !plugins.has("No"));
        let only = EnabledPlugins::only(&names(&["Priority"])).unwrap();
        assert_eq!(only.rows().map(|row| row.name).collect::<Vec<_>>(), ["Priority"]);
    }

    #[test]
    fn invalid_names_are_refused_with_upstreams_messages() {
        for (enable, disable, error) in [
            (&["No", "Nu"][..], &[][..], "plugin \"No\" is unknown"),
            (&[], &["No"], "plugin \"No\" is unknown"),
            (
                &["Priority", "LimitRanger", "Priority"],
                &["LimitRanger", "Priority"],
                "[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins overlapped",
            ),
        ] {
            let refused = EnabledPlugins::from_flags(&names(enable), &names(disable)).unwrap_err();
            assert_eq!(refused.to_string(), error);
        }
        assert!(EnabledPlugins::only(&names(&["No"])).is_err());
    }
}

//! Command line of the program `kube-apiserver`, and the environment variable that selects controllers.

use std::ffi::OsString;

use portico_server::controllers::{find, unknown_message};

use crate::settings::SettingError;

/// Variable with the controllers of kube-controller-manager to run. By default none run, because envtest starts
/// no controllers either.
const CONTROLLERS: &str = "PORTICO_TESTENV_CONTROLLERS";

/// Suffix of controller names, which may be omitted in the variable.
const SUFFIX: &str = "-controller";

/// Replaces `_` by `-` in names of flags, as kube-apiserver does.
pub(super) fn normalize(arguments: Vec<OsString>) -> Vec<OsString> {
    arguments
        .into_iter()
        .map(|argument| argument.to_str().and_then(normalize_flag).unwrap_or(argument))
        .collect()
}

fn normalize_flag(argument: &str) -> Option<OsString> {
    let flag = argument.strip_prefix("--")?;
    let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
    let name = name.replace('_', "-");
    Some(match value {
        Some(value) => format!("--{name}={value}").into(),
        None => format!("--{name}").into(),
    })
}

/// Reads the variable, and returns the value for `--controllers`.
///
/// # Errors
/// Returns an error if the variable names an unknown controller.
pub(super) fn controllers() -> Result<String, SettingError> {
    complete_names(&std::env::var(CONTROLLERS).unwrap_or_default())
}

/// Completes the names of controllers that lack the suffix.
fn complete_names(names: &str) -> Result<String, SettingError> {
    let complete_name = |name: &str| {
        let bare = name.strip_prefix('-').unwrap_or(name);
        let longer = format!("{bare}{SUFFIX}");
        let minus = if bare == name { "" } else { "-" };
        match (bare, find(bare), find(&longer)) {
            ("*", ..) | (_, Some(_), _) => Ok(name.to_owned()),
            (_, None, Some(_)) => Ok(format!("{minus}{longer}")),
            (_, None, None) => Err(SettingError::new(CONTROLLERS, unknown_message(bare))),
        }
    };
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    Ok(names.map(complete_name).collect::<Result<Vec<_>, _>>()?.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_named_with_or_without_their_suffix() {
        for (value, names) in [
            ("", ""),
            ("*", "*"),
            ("garbage-collector, namespace", "garbage-collector-controller,namespace"),
            ("*,-resourcequota-controller", "*,-resourcequota-controller"),
            ("*,-garbage-collector", "*,-garbage-collector-controller"),
        ] {
            assert_eq!(complete_names(value).unwrap(), names);
        }
        let error = complete_names("no-such").unwrap_err().to_string();
        for part in [CONTROLLERS, "\"no-such\" is not", "namespace-controller, "] {
            assert!(error.contains(part), "{part} is missing: {error}");
        }
    }

    #[test]
    fn underscores_in_the_names_of_flags_are_dashes() {
        let arguments = ["kube-apiserver", "--secure_port=1", "--feature_gates", "A_b=true", "-v=2"];
        let read = normalize(arguments.map(OsString::from).to_vec());
        assert_eq!(read, ["kube-apiserver", "--secure-port=1", "--feature-gates", "A_b=true", "-v=2"]);
    }
}

//! `portico reference`: hidden command that prints the data of the pages in docs/reference as JSON.

use std::process::ExitCode;

use clap::{Arg, Command};
use serde::Serialize;

use portico_server::controllers::{CONTROLLERS, StartMode};

use crate::exit::{fail_with, print_text};
use crate::exit_codes;
use crate::settings::FOREIGN_FLAGS;

#[derive(Serialize)]
struct Facts {
    command: CommandFacts,
    foreign_flags: Vec<ForeignFlagFacts>,
    controllers: Vec<ControllerFacts>,
    admission_plugins: Vec<PluginFacts>,
}

#[derive(Serialize)]
struct ForeignFlagFacts {
    name: &'static str,
    outcome: String,
    reason: &'static str,
}

#[derive(Serialize)]
struct ControllerFacts {
    name: &'static str,
    former_name: &'static str,
    availability: &'static str,
    description: &'static str,
}

#[derive(Serialize)]
struct PluginFacts {
    name: &'static str,
    on_by_default: bool,
    mutates: bool,
    validates: bool,
    description: &'static str,
}

#[derive(Serialize)]
struct CommandFacts {
    name: String,
    about: Option<String>,
    long_about: Option<String>,
    usage: String,
    hidden: bool,
    arguments: Vec<ArgumentFacts>,
    commands: Vec<CommandFacts>,
}

#[derive(Serialize)]
struct ArgumentFacts {
    long: Option<String>,
    short: Option<char>,
    value_name: Option<String>,
    defaults: Vec<String>,
    possible_values: Vec<ValueFacts>,
    heading: Option<String>,
    help: Option<String>,
    long_help: Option<String>,
    repeatable: bool,
    global: bool,
    hidden: bool,
}

#[derive(Serialize)]
struct ValueFacts {
    name: String,
    help: Option<String>,
}

/// Prints the data about commands, flags, controllers and admission plugins as JSON.
pub(crate) fn print(tree: Command) -> ExitCode {
    match serde_json::to_string_pretty(&facts(tree)) {
        Ok(text) => print_text(&text, exit_codes::NOT_PRINTED),
        Err(error) => fail_with(&error.to_string(), exit_codes::NOT_PRINTED),
    }
}

fn facts(mut root: Command) -> Facts {
    root.build();
    let foreign = FOREIGN_FLAGS.iter().map(|flag| ForeignFlagFacts {
        name: flag.name,
        outcome: flag.outcome(),
        reason: flag.reason,
    });
    let controllers = CONTROLLERS.iter().map(|controller| ControllerFacts {
        name: controller.name,
        former_name: controller.alias,
        availability: match controller.start_mode {
            StartMode::Runs => "yes",
            StartMode::RunsByName => "by name",
            StartMode::NotImplemented => "not implemented",
        },
        description: controller.description,
    });
    let plugins = portico_server::plugin_reference().map(|plugin| PluginFacts {
        name: plugin.name,
        on_by_default: plugin.on_by_default,
        mutates: plugin.mutates,
        validates: plugin.validates,
        description: plugin.description,
    });
    Facts {
        command: command_facts(&root),
        foreign_flags: foreign.collect(),
        controllers: controllers.collect(),
        admission_plugins: plugins.collect(),
    }
}

fn command_facts(command: &Command) -> CommandFacts {
    CommandFacts {
        name: command.get_name().to_owned(),
        about: command.get_about().map(ToString::to_string),
        long_about: command.get_long_about().map(ToString::to_string),
        usage: command.clone().render_usage().to_string(),
        hidden: command.is_hide_set(),
        arguments: command.get_arguments().map(argument_facts).collect(),
        commands: command.get_subcommands().filter(|c| c.get_name() != "help").map(command_facts).collect(),
    }
}

fn argument_facts(argument: &Arg) -> ArgumentFacts {
    let takes_value = argument.get_num_args().is_some_and(|range| range.takes_values());
    let value_name = argument.get_value_names().map(|names| names.join(" "));
    ArgumentFacts {
        long: argument.get_long().map(str::to_owned),
        short: argument.get_short(),
        value_name: value_name.filter(|_| takes_value),
        defaults: argument.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()).collect(),
        possible_values: if takes_value { possible_values(argument) } else { Vec::new() },
        heading: argument.get_help_heading().map(str::to_owned),
        help: argument.get_help().map(ToString::to_string),
        long_help: argument.get_long_help().map(ToString::to_string),
        repeatable: matches!(argument.get_action(), clap::ArgAction::Append),
        global: argument.is_global_set(),
        hidden: argument.is_hide_set(),
    }
}

fn possible_values(argument: &Arg) -> Vec<ValueFacts> {
    let values = argument.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    let facts = values.map(|value| ValueFacts {
        name: value.get_name().to_owned(),
        help: value.get_help().map(ToString::to_string),
    });
    facts.collect()
}

//! The whole folder as documents, of one moment.

use std::fs;

use portico_gostd::os::error_text;

use crate::document::{self, Document, Fault, Origin};
use crate::folder::{self, FolderError, Found};
use crate::settings::{MAX_DOCUMENTS, MAX_FILE_BYTES, Settings};
use crate::split::split;

/// How often it is read again when files change meanwhile.
const MAX_ATTEMPTS: usize = 5;

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The files, from outside.
    pub(crate) files: Vec<Found>,
    /// In order.
    pub(crate) documents: Vec<Document>,
    /// What is no object.
    pub(crate) faults: Vec<Fault>,
}

/// Reads everything. Files that change while they are read are read again.
///
/// # Errors
/// [`FolderError`]; a file that cannot be read is a fault.
pub(crate) fn read(settings: &Settings) -> Result<Reading, FolderError> {
    let mut files = folder::list(settings)?;
    let mut attempt = 1;
    loop {
        let mut reading = Reading::default();
        for file in &files {
            reading.add(settings, file)?;
        }
        let now = folder::list(settings)?;
        if now == files || attempt == MAX_ATTEMPTS {
            // Where it never stood still, the next look finds it changed.
            return Ok(Reading { files, ..reading });
        }
        (files, attempt) = (now, attempt + 1);
    }
}

impl Reading {
    fn add(&mut self, settings: &Settings, file: &Found) -> Result<(), FolderError> {
        let name = file.path.display().to_string();
        let text = match text(settings, file) {
            Ok(text) => text,
            Err(message) => {
                let origin = Origin { file: name, document: 1, item: None, line: 1 };
                self.faults.push(Fault { origin, object: String::new(), message });
                return Ok(());
            }
        };
        for (at, part) in split(&text).iter().enumerate() {
            for read in document::read(&name, at + 1, part) {
                match read {
                    Ok(document) => self.documents.push(document),
                    Err(fault) => self.faults.push(fault),
                }
                if self.documents.len() + self.faults.len() > MAX_DOCUMENTS {
                    let folder = settings.folder.display().to_string();
                    return Err(FolderError::Documents { folder, max: MAX_DOCUMENTS });
                }
            }
        }
        Ok(())
    }
}

fn text(settings: &Settings, file: &Found) -> Result<String, String> {
    if file.bytes()? > MAX_FILE_BYTES {
        return Err(format!("more than {MAX_FILE_BYTES} bytes"));
    }
    fs::read_to_string(settings.folder.join(&file.path)).map_err(|error| error_text(&error))
}

//! Reads a consistent state of the whole folder into documents.

use std::fs;

use portico_gostd::os::error_text;

use crate::document::{self, Document, Fault, Origin};
use crate::folder::{self, FileEntry, FolderError};
use crate::settings::{MAX_DOCUMENTS, MAX_FILE_BYTES, Settings};
use crate::split::split;

/// Maximum attempts if files change while they are read.
const MAX_ATTEMPTS: usize = 5;

/// Content of the folder.
#[derive(Debug, Default)]
pub(crate) struct FolderContent {
    /// Files that were read.
    pub(crate) files: Vec<FileEntry>,
    /// Documents in order.
    pub(crate) documents: Vec<Document>,
    /// Documents that are not valid objects.
    pub(crate) faults: Vec<Fault>,
}

/// Reads all files. Reads again if files change in the meantime.
///
/// # Errors
/// Returns a [`FolderError`] if the folder cannot be read; a single file that cannot be read is a fault.
pub(crate) fn read(settings: &Settings) -> Result<FolderContent, FolderError> {
    let mut files = folder::list(settings)?;
    let mut attempt = 1;
    loop {
        let mut content = FolderContent::default();
        for file in &files {
            content.add(settings, file)?;
        }
        let files_after = folder::list(settings)?;
        if files_after == files || attempt == MAX_ATTEMPTS {
            // If the files keep changing, the next poll sees a change.
            return Ok(FolderContent { files, ..content });
        }
        (files, attempt) = (files_after, attempt + 1);
    }
}

impl FolderContent {
    fn add(&mut self, settings: &Settings, file: &FileEntry) -> Result<(), FolderError> {
        let name = file.path.display().to_string();
        let text = match read_text(settings, file) {
            Ok(text) => text,
            Err(message) => {
                let origin = Origin { file: name, document: 1, item: None, line: 1 };
                self.faults.push(Fault { origin, object: String::new(), message });
                return Ok(());
            }
        };
        for (index, part) in split(&text).iter().enumerate() {
            for parsed in document::parse_document(&name, index + 1, part) {
                match parsed {
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

fn read_text(settings: &Settings, file: &FileEntry) -> Result<String, String> {
    if file.bytes()? > MAX_FILE_BYTES {
        return Err(format!("more than {MAX_FILE_BYTES} bytes"));
    }
    fs::read_to_string(settings.folder.join(&file.path)).map_err(|error| error_text(&error))
}

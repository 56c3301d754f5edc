//! annotations.md: the table of `portico_machinery::annotations`.

use portico_machinery::annotations::{ANNOTATIONS, Annotation};

use super::page::Page;

pub(super) fn page() -> Page {
    let mut text = String::from(
        "# Annotations and labels\n\nKeys under `portico.dev/`. A write with an invalid value is rejected with 422. An unknown \
         annotation `portico.dev/...` on an APIService has no effect and returns a warning that names similar ones. The annotations \
         of an APIService need `spec.service`.\n\n",
    );
    text.push_str("## Annotations\n\n");
    ANNOTATIONS.iter().filter(|annotation| !annotation.is_label).for_each(|one| text.push_str(&section(one)));
    text.push_str("## Labels\n\n");
    ANNOTATIONS.iter().filter(|annotation| annotation.is_label).for_each(|one| text.push_str(&section(one)));
    Page::new("annotations.md", text)
}

fn section(annotation: &Annotation) -> String {
    let Annotation { key, kinds, values, default, meaning, .. } = annotation;
    let kinds = kinds.join(", ");
    format!("### {key}\n\n{meaning}\n\n- Objects: {kinds}\n- Values: {values}\n- Default: {default}\n\n")
}

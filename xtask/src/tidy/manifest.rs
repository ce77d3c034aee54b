//! Reads what the checks need from a `Cargo.toml`: the package's name and
//! which packages of this workspace it depends on. Not a TOML parser: these
//! files are written in one style, and a line that is not understood is
//! simply no dependency on a workspace package.

/// The dependency tables of one package.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) name: String,
    pub(super) normal: Vec<String>,
    pub(super) dev: Vec<String>,
}

/// Reads a manifest; `None` when it has no package.
pub(super) fn parse(text: &str) -> Option<Manifest> {
    let mut manifest = Manifest::default();
    let mut table = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']').to_owned();
            // `[dependencies.x]` names the dependency in the head of the table.
            if let Some((kind, dependency)) = table.rsplit_once('.') {
                manifest.add(kind, dependency);
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        if line.starts_with('#') {
            continue;
        }
        let key = key
            .trim()
            .trim_matches('"')
            .split('.')
            .next()
            .unwrap_or_default();
        if table == "package" && key == "name" {
            manifest.name = value.trim().trim_matches('"').to_owned();
        } else {
            manifest.add(&table, key);
        }
    }
    (!manifest.name.is_empty()).then_some(manifest)
}

impl Manifest {
    fn add(&mut self, table: &str, dependency: &str) {
        // `target.'cfg(…)'.dependencies` counts like the plain table.
        let kind = table.rsplit('.').next().unwrap_or(table);
        match kind {
            "dependencies" | "build-dependencies" => self.normal.push(dependency.to_owned()),
            "dev-dependencies" => self.dev.push(dependency.to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_a_dependency() {
        let manifest = parse(
            "[package]\nname = \"relay\"\n\n[dependencies]\n# kafka = 1\nevents.workspace = true\n\
             kafka = { workspace = true }\n\n[dependencies.runtime]\nworkspace = true\n\n\
             [target.'cfg(unix)'.dependencies]\ndatabase.workspace = true\n\n\
             [dev-dependencies]\ntestkit.workspace = true\n\n[features]\ncrash-points = [\"fail/failpoints\"]\n",
        )
        .expect("a package");
        assert_eq!(manifest.name, "relay");
        assert_eq!(manifest.normal, ["events", "kafka", "runtime", "database"]);
        assert_eq!(manifest.dev, ["testkit"]);
    }

    #[test]
    fn a_workspace_root_is_no_package() {
        assert_eq!(
            parse(
                "[workspace]\nmembers = []\n[workspace.dependencies]\nevents = { path = \"x\" }\n"
            ),
            None
        );
    }
}

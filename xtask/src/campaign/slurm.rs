//! The script of a Slurm array job: each task does one share. The result files are what comes
//! back, so a task that was cancelled leaves a share that is missing, and `--array` takes its
//! number again.

use super::Asked;
use super::catalogue::Size;
use std::path::Path;

/// Returns the script. The folder of the results must be one that all nodes see.
pub fn script(root: &Path, own: &Path, folder: &Path, asked: &Asked, size: &Size) -> String {
    let Asked { name, shards, .. } = asked;
    let (root, own, folder) = (root.display(), own.display(), folder.display());
    let options: String = asked.options(size).iter().map(|it| format!(" '{it}'")).collect();
    format!(
        "#!/bin/sh\n\
         #SBATCH --job-name=diapason-{name}\n\
         #SBATCH --array=0-{}\n\
         #SBATCH --cpus-per-task=1\n\
         # Build `xtask` and `diapason` first, with one profile. When all tasks have ended:\n\
         # cargo xtask campaign {name} --merge, with the options below.\n\
         cd '{root}' || exit 4\n\
         exec '{own}' campaign {name}{options} \\\n\
         \x20   --shard \"$SLURM_ARRAY_TASK_ID\" --out '{folder}'\n",
        shards - 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        asked: Asked,
    }

    #[test]
    fn a_task_does_the_share_of_its_number() {
        let words = ["campaign", "search", "--count", "50", "--seed", "7", "--shards", "8"];
        let asked = Command::parse_from(words).asked;
        let size = Size { count: 50, seed: 7, system: String::from("a b.toml") };
        let text = script(
            Path::new("/src"),
            Path::new("/src/xtask"),
            Path::new("/shared/out"),
            &asked,
            &size,
        );
        assert!(text.starts_with("#!/bin/sh\n#SBATCH --job-name=diapason-search\n"), "{text}");
        assert!(text.contains("#SBATCH --array=0-7\n"), "{text}");
        let words = "exec '/src/xtask' campaign search '--seed=7' '--count=50' \
                     '--shards=8' '--system=a b.toml' \
                     \\\n    --shard \"$SLURM_ARRAY_TASK_ID\" --out '/shared/out'\n";
        assert!(text.ends_with(words), "{text}");
    }
}

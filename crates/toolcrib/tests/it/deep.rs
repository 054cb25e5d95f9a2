//! Tests of the deep tier on the command line: what it finds, and the file in which it keeps vectors between runs. Each
//! test has a home folder of its own, so it starts without vectors.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{Run, file, own_path, run_in};

/// A request that shares no word with its tool, [`COURT`]. By its words, it is a request for [`MUSIC`].
const QUERY: &str = "I want to play at Wimbledon";
const COURT: &str = "town__reserve_court";
const MUSIC: &str = "town__play_music";
/// The name, the description and the parameter of each tool.
const TOOLS: [(&str, &str, &str); 4] = [
    (COURT, "Reserves a tennis court.", "date"),
    (MUSIC, "Plays a song.", "song"),
    ("town__show_balance", "Reports the money on an account.", "account"),
    ("town__list_beds", "Lists beds for sale.", "size"),
];
/// Size of a record in bytes: a key, a scale, a vector and a checksum.
const RECORD: usize = 16 + 4 + 384 + 8;
const CHECKSUM: usize = 8;

/// A home folder with a catalog.
struct Home {
    path: PathBuf,
    catalog: String,
}

impl Home {
    fn new(name: &str) -> Self {
        let path = own_path(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        // The state folder is used only if no other user can write to it, independent of the umask.
        #[cfg(unix)]
        set_mode(&path, 0o700);
        let catalog = write_catalog(&format!("{name}/catalog.jsonl"), &TOOLS);
        Self { path, catalog }
    }

    /// Runs a command that ranks the tools for [`QUERY`].
    fn run(&self, command: &str, args: &[&str]) -> Run {
        let args = [&[command, "--catalog", &self.catalog, "--json", QUERY], args].concat();
        run_in(&self.path, &self.path, &args, "")
    }

    /// Returns the output of `explain`, which contains the cosines of the tools.
    fn explain(&self, args: &[&str]) -> Value {
        let run = self.run("explain", args);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
        run.json()
    }

    fn vectors_folder(&self) -> PathBuf {
        self.path.join(".local/state/toolcrib/vectors")
    }

    /// Returns the only file in the folder of vectors.
    fn vectors_file(&self) -> PathBuf {
        let files: Vec<PathBuf> =
            fs::read_dir(self.vectors_folder()).unwrap().map(|it| it.unwrap().path()).collect();
        let [file] = &files[..] else { panic!("one file expected: {files:?}") };
        let (name, ending) = (file.file_stem().unwrap(), file.extension().unwrap());
        let name = name.to_str().unwrap();
        assert!(name.len() == 32 && name.chars().all(|c| c.is_ascii_hexdigit()), "{name}");
        assert_eq!(ending, "bin");
        file.clone()
    }

    fn vectors(&self) -> Vec<u8> {
        fs::read(self.vectors_file()).unwrap()
    }
}

#[cfg(unix)]
fn set_mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn write_catalog(name: &str, tools: &[(&str, &str, &str)]) -> String {
    let tools = tools.iter().map(|(name, description, parameter)| {
        let schema = json!({"type": "object", "properties": {*parameter: {"type": "string"}}});
        json!({"name": name, "description": description, "input_schema": schema}).to_string()
    });
    file(name, &tools.collect::<Vec<_>>().join("\n"))
}

/// Returns the name of the first tool, the tier, and whether the tool has a deep cosine.
fn first(explained: &Value) -> (&str, &str, bool) {
    let tool = &explained["tools"][0];
    let (name, tier) = (&tool["name"], &tool["nearness"]["tier"]);
    let cosine = tool["nearness"].get("deep_cosine").and_then(Value::as_f64);
    assert!(cosine.is_none_or(|cosine| cosine.abs() <= 1.0), "{tool}");
    (name.as_str().unwrap(), tier.as_str().unwrap(), cosine.is_some())
}

/// Returns the records of a file whose checksum is correct.
fn intact_records(bytes: &[u8]) -> Vec<&[u8]> {
    let is_intact = |record: &&[u8]| {
        let (content, checksum) = record.split_at(RECORD - CHECKSUM);
        blake3::hash(content).as_bytes().starts_with(checksum)
    };
    bytes.chunks_exact(RECORD).filter(is_intact).collect()
}

#[test]
fn the_encoder_finds_a_tool_that_shares_no_word_with_the_request() {
    let home = Home::new("home");
    assert_eq!(first(&home.explain(&["--tier", "deep"])), (COURT, "deep", true));
    assert_eq!(first(&home.explain(&["--tier", "table"])), (MUSIC, "table", false));
    assert_eq!(first(&home.explain(&[])), (COURT, "deep", true), "`auto` is the default");
    for (tier, name) in [("deep", COURT), ("table", MUSIC)] {
        let found = home.run("search", &["--tier", tier]);
        assert_eq!((found.code, &found.json()["hits"][0]["name"]), (0, &json!(name)), "{tier}");
    }
}

#[test]
fn the_config_chooses_the_tier_and_the_command_line_takes_precedence() {
    let home = Home::new("home");
    let config = file("tier.toml", "[rank]\ntier = 'table'\n");
    assert_eq!(first(&home.explain(&["--config", &config])), (MUSIC, "table", false));
    assert!(!home.vectors_folder().exists());
    let deep = home.explain(&["--config", &config, "--tier", "deep"]);
    assert_eq!(first(&deep), (COURT, "deep", true));
}

#[test]
fn a_second_run_embeds_nothing() {
    let home = Home::new("home");
    let explained = home.explain(&[]);
    let vectors = home.vectors();
    assert_eq!(intact_records(&vectors).len(), TOOLS.len());
    assert_eq!(vectors.len(), TOOLS.len() * RECORD);
    assert_eq!(home.explain(&[]), explained);
    home.run("search", &[]);
    assert!(home.vectors() == vectors, "the file changed");
}

#[test]
fn only_a_tool_whose_text_changed_is_embedded_again() {
    let home = Home::new("home");
    home.explain(&[]);
    let before = home.vectors();
    let mut tools = TOOLS;
    tools[2].1 = "Reports how much money is on an account.";
    write_catalog("home/catalog.jsonl", &tools);
    home.explain(&[]);
    let after = home.vectors();
    assert!(after.starts_with(&before), "the records of the other tools changed");
    assert_eq!(intact_records(&after).len(), TOOLS.len() + 1);
    assert_eq!(after.len(), before.len() + RECORD);
}

#[test]
fn catalogs_with_the_same_tools_share_their_vectors() {
    let mut home = Home::new("home");
    home.explain(&[]);
    let before = home.vectors();
    let mut tools = TOOLS;
    tools.reverse();
    home.catalog = write_catalog("home/another.jsonl", &tools[1..]);
    assert_eq!(first(&home.explain(&[])), (COURT, "deep", true));
    assert!(home.vectors() == before, "the file changed");
}

#[test]
fn with_fast_only_vectors_of_earlier_runs_are_used() {
    let home = Home::new("home");
    for command in ["search", "explain"] {
        assert_eq!(home.run(command, &["--fast"]).code, 0);
        assert!(!home.vectors_folder().exists(), "{command}");
    }
    assert_eq!(first(&home.explain(&["--fast"])), (MUSIC, "table", false));
    let explained = home.explain(&[]);
    assert_eq!(first(&explained), (COURT, "deep", true));
    assert_eq!(home.explain(&["--fast"]), explained);
}

/// A change that damages a file of vectors.
type Damage = fn(&mut Vec<u8>);

const DAMAGES: [(&str, Damage); 10] = [
    ("a flipped bit in the key of a record", |bytes| bytes[3 * RECORD] ^= 1),
    ("a flipped bit in the vector of a record", |bytes| bytes[3 * RECORD + 200] ^= 0x40),
    ("a flipped bit in the vector of every record", |bytes| {
        bytes.chunks_mut(RECORD).for_each(|record| record[200] ^= 0x40);
    }),
    ("a flipped bit in a checksum", |bytes| bytes[4 * RECORD - 1] ^= 0x80),
    ("the last record without its end", |bytes| bytes.truncate(bytes.len() - 1)),
    ("the last record with only its first byte", |bytes| bytes.truncate(bytes.len() - RECORD + 1)),
    ("an empty file", Vec::clear),
    ("garbage of one byte", |bytes| *bytes = vec![b'x']),
    ("garbage with the size of two records", |bytes| *bytes = vec![b'x'; 2 * RECORD]),
    ("garbage after the first record", |bytes| bytes[RECORD..].fill(b'x')),
];

#[test]
fn a_damaged_file_does_not_change_the_result() {
    let home = Home::new("home");
    let explained = home.explain(&[]);
    let whole = home.vectors();
    for (what, damage) in DAMAGES {
        let mut damaged = whole.clone();
        damage(&mut damaged);
        fs::write(home.vectors_file(), &damaged).unwrap();
        assert_eq!(home.explain(&[]), explained, "{what}");
        // A file that ends in the middle of a record loses its older half, so another run may embed texts again.
        home.explain(&[]);
        let repaired = home.vectors();
        assert_eq!(repaired.len() % RECORD, 0, "{what}");
        assert_eq!(home.explain(&["--fast"]), explained, "{what}: all vectors are saved again");
        home.explain(&[]);
        assert!(home.vectors() == repaired, "{what}: texts were embedded again");
    }
}

#[test]
fn a_damaged_record_costs_only_that_record() {
    let home = Home::new("home");
    let explained = home.explain(&[]);
    let whole = home.vectors();
    for (what, damage) in DAMAGES {
        let mut damaged = whole.clone();
        damage(&mut damaged);
        fs::write(home.vectors_file(), &damaged).unwrap();
        assert_eq!(home.explain(&[]), explained, "{what}");
        let repaired = home.vectors();
        let intact = intact_records(&repaired).len();
        assert_eq!(intact, TOOLS.len(), "{what}: records after one run");
    }
}

/// A file that is larger than any that was written by Toolcrib is replaced.
#[test]
fn a_file_that_is_too_large_is_replaced() {
    let home = Home::new("home");
    let explained = home.explain(&[]);
    let whole = home.vectors();
    // More than the maximum of 50,000 records. The file is sparse, so it takes no space.
    let file = fs::File::options().write(true).open(home.vectors_file()).unwrap();
    file.set_len(60_000 * RECORD as u64).unwrap();
    assert_eq!(home.explain(&[]), explained);
    assert_eq!(home.vectors().len(), whole.len());
    assert_eq!(home.explain(&["--fast"]), explained);
}

/// Returns the records of a file with the vectors of the tools swapped, so that each tool has the vector of another one. All
/// checksums are correct.
#[cfg(unix)]
fn with_swapped_vectors(bytes: &[u8]) -> Vec<u8> {
    const KEY: usize = 16;
    let contents: Vec<&[u8]> =
        bytes.chunks_exact(RECORD).map(|record| &record[..RECORD - CHECKSUM]).collect();
    let others = contents.iter().rev();
    let swapped = contents.iter().zip(others).flat_map(|(own, other)| {
        let mut record = [&own[..KEY], &other[KEY..]].concat();
        let checksum = blake3::hash(&record);
        record.extend(&checksum.as_bytes()[..CHECKSUM]);
        record
    });
    swapped.collect()
}

/// Another user who can write to the folder could plant vectors there.
#[cfg(unix)]
#[test]
fn a_folder_that_others_may_write_to_is_neither_read_nor_written() {
    let home = Home::new("home");
    let explained = home.explain(&[]);
    let planted = with_swapped_vectors(&home.vectors());
    fs::write(home.vectors_file(), &planted).unwrap();
    // In a private folder, the planted vectors are used.
    assert_ne!(home.explain(&[]), explained);
    for mode in [0o777, 0o770, 0o702] {
        set_mode(&home.vectors_folder(), mode);
        assert_eq!(home.explain(&[]), explained, "{mode:o}");
        let found = home.run("search", &[]);
        assert_eq!((found.code, &found.json()["hits"][0]["name"]), (0, &json!(COURT)));
        let fast = home.explain(&["--fast"]);
        assert_eq!(first(&fast), (MUSIC, "table", false), "{mode:o}: no vectors are read");
        assert!(home.vectors() == planted, "{mode:o}: the file changed");
    }
    set_mode(&home.vectors_folder(), 0o700);
    fs::remove_file(home.vectors_file()).unwrap();
    set_mode(&home.vectors_folder(), 0o777);
    assert_eq!(home.explain(&[]), explained);
    assert_eq!(fs::read_dir(home.vectors_folder()).unwrap().count(), 0, "a file was written");
}

/// Without a home folder there is no place for the file. Tools are then embedded in every run.
#[test]
fn without_a_state_folder_tools_are_embedded_in_every_run() {
    let home = Home::new("home");
    let explained = home.explain(&[]);
    assert_eq!(first(&explained), (COURT, "deep", true));
    let args = ["explain", "--catalog", &home.catalog, "--json", QUERY];
    let folder = PathBuf::from("not/absolute");
    for _ in 0..2 {
        assert_eq!(run_in(&home.path, &folder, &args, "").json(), explained);
    }
    assert!(!home.path.join(folder).exists());
}

/// Creates a folder with the built-in table and, if `encoder` is given, with a file of this content as the encoder.
fn model_folder(name: &str, encoder: Option<&[u8]>) -> PathBuf {
    let folder = own_path(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolcrib-embed/weights/table.bin");
    fs::copy(table, folder.join("table.bin")).unwrap();
    if let Some(encoder) = encoder {
        fs::write(folder.join("encoder.bin"), encoder).unwrap();
    }
    folder
}

fn builtin_encoder() -> Vec<u8> {
    fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/weights/encoder.bin")).unwrap()
}

#[test]
fn a_folder_without_an_encoder_ranks_with_its_table_unless_the_tier_is_deep() {
    let home = Home::new("home");
    let folder = model_folder("table-only", None);
    let folder = folder.to_str().unwrap();
    let explained = home.explain(&["--embedding-model", folder]);
    assert_eq!(first(&explained), (MUSIC, "table", false));
    let config = file("deep.toml", "[rank]\ntier = 'deep'\n");
    for chosen in [["--tier", "deep"], ["--config", &config]] {
        let args = [&chosen[..], &["--embedding-model", folder]].concat();
        for command in ["search", "explain"] {
            let run = home.run(command, &args);
            let expected = "error: `rank.tier`: there is no encoder for the deep tier\n\
                            hint: add an `encoder.bin` to the folder of the embedding model, or set `rank.tier` to \"auto\"\n";
            assert_eq!((run.code, run.err.as_str()), (2, expected));
        }
    }
    assert!(!home.vectors_folder().exists());
}

#[test]
fn an_encoder_in_a_folder_has_a_file_of_its_own() {
    let home = Home::new("home");
    home.explain(&[]);
    let builtin = home.vectors_file();
    let whole = home.vectors();
    let mut other = builtin_encoder();
    // The id in the header makes it another encoder. `training/write_encoder.py` writes a hash of the weights there.
    other[48] ^= 1;
    let folder = model_folder("other", Some(&other));
    let explained = home.explain(&["--embedding-model", folder.to_str().unwrap()]);
    assert_eq!(first(&explained).1, "deep");
    let mut files: Vec<PathBuf> =
        fs::read_dir(home.vectors_folder()).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|file| *file != builtin);
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(intact_records(&fs::read(&files[0]).unwrap()).len(), TOOLS.len());
    assert!(fs::read(builtin).unwrap() == whole, "the file of the built-in encoder changed");
}

#[test]
fn a_broken_encoder_is_reported() {
    let home = Home::new("home");
    let builtin = builtin_encoder();
    let cases: [(&[u8], String); 3] = [
        (
            b"no encoder",
            "not the weights of an encoder: the file does not begin with `TCRIBEN2`\n\
             hint: use weights that were written by `training/write_encoder.py`\n"
                .to_owned(),
        ),
        (
            &builtin[..5_000],
            format!(
                "the weights of this encoder take {} bytes, but the file has 5000\n\
                 hint: the file is damaged: copy it again or write it again with `training/`\n",
                builtin.len()
            ),
        ),
        (
            &builtin[..builtin.len() - 1],
            format!(
                "the weights of this encoder take {} bytes, but the file has {}\n\
                 hint: the file is damaged: copy it again or write it again with `training/`\n",
                builtin.len(),
                builtin.len() - 1
            ),
        ),
    ];
    for (encoder, problem) in cases {
        let folder = model_folder("broken", Some(encoder));
        let folder = folder.to_str().unwrap();
        let expected = format!("error: `{folder}/encoder.bin`: {problem}");
        for tier in ["deep", "auto"] {
            let run = home.run("search", &["--tier", tier, "--embedding-model", folder]);
            assert_eq!((run.code, &run.err), (2, &expected), "{tier}");
        }
        // The encoder is not read if it is not used.
        let explained = home.explain(&["--tier", "table", "--embedding-model", folder]);
        assert_eq!(first(&explained), (MUSIC, "table", false));
    }
}

#[test]
fn an_unknown_tier_is_reported_with_the_known_ones() {
    let home = Home::new("home");
    let config = file("sideways.toml", "[rank]\ntier = \"sideways\"\n");
    let run = home.run("search", &["--config", &config]);
    let expected = format!(
        "error: `{config}`: unknown variant `sideways`, expected one of `auto`, `table`, `deep` at line 2, column 8\n\
         hint: `toolcrib docs settings` lists the keys and their defaults\n"
    );
    assert_eq!((run.code, run.err), (2, expected));
    let run = home.run("search", &["--tier", "sideways"]);
    let expected = "error: invalid value 'sideways' for '--tier <TIER>'\n\
                    hint: possible values: auto, table, deep\n";
    assert_eq!((run.code, run.err.as_str()), (2, expected));
}

#[test]
fn a_preset_that_ranks_by_words_embeds_nothing() {
    for preset in ["words", "everruns", "hermes", "opencode", "claude-code"] {
        let home = Home::new(preset);
        for command in ["search", "explain"] {
            let run = home.run(command, &["--preset", preset]);
            assert!(run.code < 2, "{preset} {command}: {run:?}");
            assert!(!home.vectors_folder().exists(), "{preset} {command}");
        }
    }
    let home = Home::new("default");
    home.run("search", &["--preset", "default"]);
    assert_eq!(home.vectors().len(), TOOLS.len() * RECORD);
}

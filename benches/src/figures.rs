//! Percentiles, and what a process takes of memory and time.

/// The value below which a share of all values lies. The values must be sorted.
pub fn at(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

/// The one in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    at(&values, 0.5)
}

/// Resident memory of a process in megabytes, where the system tells; `"self"` is this one.
pub fn resident_mb(process: &str) -> f64 {
    megabytes(process, "VmRSS:")
}

/// The most that it ever was.
pub fn peak_mb(process: &str) -> f64 {
    megabytes(process, "VmHWM:")
}

fn megabytes(process: &str, kind: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(kind)).unwrap_or_default();
    let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0.0);
    kib * 1.024e-3
}

/// Processor time of a process so far.
pub fn cpu_seconds(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name may have spaces in it, and ends with the last parenthesis.
    let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    // User and system time, in hundredths.
    let ticks = after.split_whitespace().skip(11).take(2);
    ticks.filter_map(|text| text.parse::<f64>().ok()).sum::<f64>() / 100.0
}

//! Percentiles, and the memory and CPU time of a process.

/// Returns the quantile `share`, from 0 to 1, of sorted values, or NaN if there are no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

/// Returns the median of unsorted values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// Returns the resident memory of a process in megabytes, or 0 if the system does not report it. The process id
/// `"self"` means this process.
pub fn resident_mb(process: &str) -> f64 {
    megabytes(process, "VmRSS:")
}

/// Returns the peak resident memory of a process in megabytes, or 0 if the system does not report it.
pub fn peak_mb(process: &str) -> f64 {
    megabytes(process, "VmHWM:")
}

fn megabytes(process: &str, kind: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(kind)).unwrap_or_default();
    let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0.0);
    kib * 1.024e-3
}

/// Returns the CPU time of a process so far, in seconds.
pub fn cpu_seconds(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The process name may contain spaces, so skip it: it ends at the last closing parenthesis.
    let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    // After eleven other values come user and system time, in hundredths of a second.
    let ticks = after.split_whitespace().skip(11).take(2);
    ticks.filter_map(|text| text.parse::<f64>().ok()).sum::<f64>() / 100.0
}

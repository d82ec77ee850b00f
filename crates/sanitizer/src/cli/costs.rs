//! Costs of a run, for people.

use tilewise_sanitizer::{Counters, Measure};

/// A number with commas between the thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The table of costs: totals, and the most of one invocation if that is counted.
pub(crate) fn table(counters: &Counters) -> String {
    let measured = |Measure { total, max }: Measure| (total, Some(max));
    let rows = [
        ("global reads", measured(counters.global_reads)),
        ("global writes", measured(counters.global_writes)),
        ("global read bytes", measured(counters.global_read_bytes)),
        ("global write bytes", measured(counters.global_write_bytes)),
        ("uniform reads", measured(counters.uniform_reads)),
        ("shared reads", measured(counters.shared_reads)),
        ("shared writes", measured(counters.shared_writes)),
        ("shared read bytes", measured(counters.shared_read_bytes)),
        ("shared write bytes", measured(counters.shared_write_bytes)),
        ("atomics", measured(counters.atomics)),
        ("arithmetic", measured(counters.arithmetic)),
        ("barriers", measured(counters.barriers)),
        ("read transactions", (counters.read_transactions, None)),
        ("write transactions", (counters.write_transactions, None)),
        ("bank conflicts", (counters.bank_conflicts, None)),
        ("invocations", (counters.invocations, None)),
        ("operations", (counters.operations, None)),
    ];
    let mut text = format!("{:18} {:>20} {:>20}\n", "cost", "total", "max per invocation");
    for (name, (total, max)) in rows {
        let line = format!(
            "{name:18} {:>20} {:>20}",
            grouped(total),
            max.map(grouped).unwrap_or_default()
        );
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn every_counter_has_a_row() {
        let counters = Counters {
            shared_reads: Measure { total: 4096, max: 16 },
            bank_conflicts: 7,
            ..Counters::default()
        };
        let table = table(&counters);
        assert!(
            table.contains("shared reads                      4,096                   16\n"),
            "{table}"
        );
        assert!(table.contains("bank conflicts                        7\n"), "{table}");
        let fields = serde_json::to_value(&counters)
            .unwrap()
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>();
        for field in &fields {
            assert!(table.contains(&field.replace('_', " ")), "{field}");
        }
        assert_eq!(table.lines().count(), 1 + fields.len());
    }
}

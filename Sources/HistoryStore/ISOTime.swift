// Times in messages.

import Glibc

/// The ISO 8601 text of a wall-clock time in µs: `2026-01-31T12:00:00Z`.
func isoTime(_ microseconds: Int64) -> String {
  var seconds = time_t((Double(microseconds) / 1_000_000).rounded(.down))
  var parts = tm()
  guard gmtime_r(&seconds, &parts) != nil else { return "\(seconds) s" }
  var text = [CChar](repeating: 0, count: 64)
  let count = strftime(&text, text.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
  return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

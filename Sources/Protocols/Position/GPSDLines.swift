// Splits the bytes of gpsd into lines. A line has a limited length, because the other end may not be gpsd. The longest lines of gpsd are
// SKY reports: 185 satellites of less than 150 bytes each.

struct GPSDLines: Sendable {
  /// The maximum length of a line in bytes.
  static let maxLength = 32 << 10

  private var line: [UInt8] = []
  /// Whether the rest of a line that is too long is being skipped.
  private var isSkipping = false

  /// Adds bytes, and passes each complete line, without its end, to `body`; nil for a line that was too long. Empty lines are omitted.
  mutating func add(_ bytes: [UInt8], _ body: ([UInt8]?) -> Void) {
    var rest = bytes[...]
    while let end = rest.firstIndex(of: lineFeed) {
      append(rest[..<end], body)
      rest = rest[(end + 1)...]
      if line.last == carriageReturn { line.removeLast() }
      if !line.isEmpty { body(line) }
      line.removeAll(keepingCapacity: true)
      isSkipping = false
    }
    append(rest, body)
  }

  private mutating func append(_ bytes: ArraySlice<UInt8>, _ body: ([UInt8]?) -> Void) {
    guard !isSkipping else { return }
    line += bytes
    guard line.count > Self.maxLength else { return }
    line = []
    isSkipping = true
    body(nil)
  }
}

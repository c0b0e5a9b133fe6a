// Imports Torque's tables of extended PIDs: Name,ShortName,ModeAndPID,Equation,Min Value,Max Value,Units,Header, with or without a title
// line or quotes, and with any line ends. Minimum and maximum are the range of a gauge, which real values can exceed, so they become
// comments.

import Protocols

enum TorqueTable {
  private enum Column: String, CaseIterable {
    case name, short = "shortname", request = "modeandpid", equation, minimum = "minvalue", maximum = "maxvalue", units, header
    case start = "startdiagnostic"
  }

  static func read(_ text: [UInt8], into result: inout ImportedSignals) {
    var records = CSVRecords(text)
    var columns: [Column: Int] = Dictionary(uniqueKeysWithValues: Column.allCases.enumerated().map { ($1, $0) })
    columns[.start] = nil
    var isFirst = true
    while let record = records.next() {
      defer { isFirst = false }
      if isFirst, let titles = titles(record.fields) {
        columns = titles
        continue
      }
      guard record.isValid else {
        result.skip("line \(record.line)", "unclosed quote, or more than \(CSVRecords.maxFields) fields")
        continue
      }
      let fields = record.fields
      read({ column in columns[column].flatMap { $0 < fields.count ? fields[$0] : nil } ?? "" }, line: record.line, into: &result)
    }
  }

  /// The columns by their titles; nil if this is not a title line.
  private static func titles(_ fields: [String]) -> [Column: Int]? {
    let words = fields.map { String(decoding: $0.lowercased().utf8.filter { isLetter($0) }, as: UTF8.self) }
    guard words.contains(Column.equation.rawValue), words.contains(Column.request.rawValue) else { return nil }
    var columns: [Column: Int] = [:]
    for (index, word) in words.enumerated() {
      if let column = Column(rawValue: word), columns[column] == nil { columns[column] = index }
    }
    return columns
  }

  private static func read(_ field: (Column) -> String, line: Int, into result: inout ImportedSignals) {
    let name = visible(field(.name), limit: 120)
    let place = name.isEmpty ? "line \(line)" : "line \(line) (\(name))"
    do throws(ValueError) {
      guard !field(.request).isEmpty, !field(.equation).isEmpty else {
        throw ValueError("not a line of a Torque table: Name,ShortName,ModeAndPID,Equation,Min Value,Max Value,Units,Header")
      }
      guard field(.start).isEmpty else { throw ValueError("needs a diagnostic session, which vehicled never opens") }
      let equation = field(.equation)
      var signal = ImportedSignal(request: field(.request), value: try TorqueEquation.formula(equation))
      signal.header = try header(field(.header))
      signal.unit = unit(field(.units))
      if signal.value.hasPrefix("{"), signal.value.firstIndex(of: "}") == signal.value.index(before: signal.value.endIndex) {
        signal.type = .bool
        signal.unit = nil
      } else if let low = Double(field(.minimum)), let high = Double(field(.maximum)), low.isFinite, high.isFinite, low < high {
        signal.comments.append("Range of Torque's gauge: \(Value.text(low)) to \(Value.text(high)).")
      }
      signal.help = visible(name.isEmpty ? field(.short) : name, limit: 200)
      result.add(signal, id: name.isEmpty ? field(.short) : name, place: place)
    } catch {
      result.skip(place, error.description)
    }
  }

  /// Parses a header such as `7E2`, `DA10F1` or `18DA10F1`; `Auto` and an empty field mean the default.
  private static func header(_ text: String) throws(ValueError) -> String? {
    let digits = text.lowercased().hasPrefix("0x") ? String(text.dropFirst(2)) : text
    if digits.isEmpty || digits.lowercased() == "auto" { return nil }
    guard let header = CANIdentifier(digits.utf8.count == 6 ? "18" + digits : digits) else {
      throw ValueError("header \(visible(text, limit: 20)) is not a CAN identifier")
    }
    return header.text
  }
}

/// Lines of comma-separated fields (RFC 4180, lenient).
struct CSVRecords {
  struct Record {
    var line: Int
    var fields: [String]
    /// Whether all quotes are closed, and there are not too many fields.
    var isValid: Bool
  }

  static let maxFields = 64
  private let bytes: [UInt8]
  private var at = 0
  private var line = 1

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The next line that is not empty.
  mutating func next() -> Record? {
    while at < bytes.count {
      let record = record()
      if !record.isValid || record.fields.contains(where: { !$0.isEmpty }) { return record }
    }
    return nil
  }

  private mutating func record() -> Record {
    var record = Record(line: line, fields: [], isValid: true)
    while true {
      let start = at
      guard let field = field() else {
        // An unclosed quote discards only this line, not the rest of the file.
        record.isValid = false
        at = bytes[start...].firstIndex(of: lineFeed).map { $0 + 1 } ?? bytes.count
        line = record.line + 1
        return record
      }
      if record.fields.count < Self.maxFields { record.fields.append(field) } else { record.isValid = false }
      guard at < bytes.count else { return record }
      let end = bytes[at]
      at += 1
      if end == UInt8(ascii: ",") { continue }
      if end == carriageReturn, at < bytes.count, bytes[at] == lineFeed { at += 1 }
      line += 1
      return record
    }
  }

  /// The field up to a comma or line end; nil if a quote is not closed.
  private mutating func field() -> String? {
    while at < bytes.count, bytes[at] == space || bytes[at] == tab { at += 1 }
    guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") else { return text(from: at) }
    at += 1
    var inside: [UInt8] = []
    while at < bytes.count {
      if bytes[at] == UInt8(ascii: "\"") {
        at += 1
        guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") else {
          _ = text(from: at)  // skip text between the closing quote and the comma
          return String(decoding: inside, as: UTF8.self)
        }
      }
      if bytes[at] == lineFeed { line += 1 }
      inside.append(bytes[at])
      at += 1
    }
    return nil
  }

  private mutating func text(from start: Int) -> String {
    while at < bytes.count, bytes[at] != UInt8(ascii: ","), !isLineEnd(bytes[at]) { at += 1 }
    var end = at
    while end > start, bytes[end - 1] == space || bytes[end - 1] == tab { end -= 1 }
    return String(decoding: bytes[start..<end], as: UTF8.self)
  }
}

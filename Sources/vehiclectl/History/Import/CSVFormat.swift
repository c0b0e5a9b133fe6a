// Reads CSV written by `history export`. CSV has no types: a column has the type of the recorded series of the same name and unit, or else
// the narrowest type that fits all its cells. No I/O except for the file.

import Protocols
import Varlink

/// The column of a property.
private struct CSVColumn {
  let device: String
  let property: String
  let unit: String?

  /// Parses a title such as `ev.speed (km/h)`; nil if it has no device.
  init?(_ title: String) {
    var name = title[...]
    if title.hasSuffix(")"), let start = title.lastRange(of: " (") {
      unit = String(title[start.upperBound...].dropLast())
      name = title[..<start.lowerBound]
    } else {
      unit = nil
    }
    let parts = name.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
    (device, property) = (String(parts[0]), String(parts[1]))
  }

  var reference: String { "\(device).\(property)" }

  /// The value of a cell; nil if it is not of this type.
  static func value(_ cell: String, _ type: ValueType) -> Value? {
    switch type {
    case .bool: cell == "true" ? .bool(true) : cell == "false" ? .bool(false) : nil
    case .int: Int(cell).map(Value.int)
    case .float: Double(cell).flatMap { $0.isFinite ? .float($0) : nil }
    case .string: .string(cell)
    case .list: .list(cell.split(separator: "; ").map(String.init))
    }
  }
}

extension String {
  fileprivate func lastRange(of text: String) -> Range<Index>? { ranges(of: text).last }
}

/// The types of the columns, determined by reading the whole file.
struct CSVTypes {
  private(set) var types: [ValueType] = []

  init(_ path: String, _ known: [HistoryContract.Series]) throws(Failure) {
    let file = try ImportFile(path)
    let layout = try CSVLayout(file)
    // From the narrowest to the widest.
    var candidates = layout.columns.map { column in
      known.filter { $0.device == column.device && $0.property == column.property && $0.unit == column.unit }
        .compactMap { ValueType(rawValue: $0.type) } + [.bool, .int, .float, .string]
    }
    while let cells = try file.nextRecord() {
      for (index, cell) in zip(layout.columns.indices, cells.dropFirst(layout.first)) where !cell.isEmpty {
        candidates[index].removeAll { CSVColumn.value(cell, $0) == nil }
      }
    }
    types = candidates.map { $0.first ?? .string }
  }
}

/// The positions of the columns in a file.
private struct CSVLayout {
  let columns: [CSVColumn]
  /// The index of the first property column.
  let first: Int
  /// The index of the column with the time in µs.
  let microseconds: Int?
  /// The index of the column with the time as text.
  let text: Int?
  /// The index of the column with the reasons for absent values.
  let reasons: Int?
  let count: Int

  /// Reads the column titles.
  init(_ file: ImportFile) throws(Failure) {
    let titles = try file.nextRecord() ?? []
    count = titles.count
    text = titles.firstIndex(of: "time")
    microseconds = titles.firstIndex(of: "time_us")
    reasons = titles.last == CSVExport.reasonColumn ? titles.count - 1 : nil
    first = titles.prefix { CSVExport.fixedColumns.contains($0) }.count
    var columns: [CSVColumn] = []
    for title in titles[first..<(reasons ?? titles.count)] {
      guard let column = CSVColumn(title) else { throw file.failure("the column \"\(title)\" is not named DEVICE.PROPERTY (UNIT)") }
      columns.append(column)
    }
    self.columns = columns
  }
}

struct CSVFormat: SampleFormat {
  private let layout: CSVLayout
  private let types: [ValueType]

  /// Reads the column titles of the file.
  init(_ file: ImportFile, types: CSVTypes) throws(Failure) {
    layout = try CSVLayout(file)
    self.types = types.types
  }

  func next(_ file: ImportFile) throws(Failure) -> [ImportedSample]? {
    guard let cells = try file.nextRecord() else { return nil }
    if cells == [""] { return [] }
    guard cells.count == layout.count else { throw file.failure("\(cells.count) cells instead of \(layout.count)") }
    guard let time = time(cells) else { throw file.failure("no time: \"\(cells[0])\" is not ISO 8601 with an offset from UTC") }
    var samples: [ImportedSample] = []
    for (index, column) in layout.columns.enumerated() where !cells[layout.first + index].isEmpty {
      let (cell, type) = (cells[layout.first + index], types[index])
      guard let value = CSVColumn.value(cell, type) else { throw file.failure("\"\(cell)\" in \(column.reference) is not \(type.article)") }
      samples.append(sample(column, type, time, .value(value)))
    }
    for reason in layout.reasons.map({ cells[$0].split(separator: "; ") }) ?? [] {
      let parts = reason.split(separator: ": ", maxSplits: 1)
      guard parts.count == 2, let index = layout.columns.firstIndex(where: { $0.reference == parts[0] }) else {
        throw file.failure("the reason \"\(reason)\" is not of the form \"DEVICE.PROPERTY: REASON\"")
      }
      samples.append(sample(layout.columns[index], types[index], time, .absent(String(parts[1]))))
    }
    return samples
  }

  private func sample(_ column: CSVColumn, _ type: ValueType, _ time: Int, _ content: Reading.Content) -> ImportedSample {
    ImportedSample(device: column.device, property: column.property, type: type, unit: column.unit, time: time, content: content)
  }

  private func time(_ cells: [String]) -> Int? {
    if let index = layout.microseconds, let time = Int(cells[index]) { return time }
    return layout.text.flatMap { CivilTime.parse(cells[$0]) }
  }
}

extension CivilTime {
  /// Parses a time such as `2026-11-23T08:12:05.25+01:00` or `2026-11-23T07:12:05Z` into µs since the Unix epoch; nil if it is invalid.
  static func parse(_ text: String) -> Int? {
    let pattern = /(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:(Z)|([+-])(\d\d):?(\d\d))/
    guard let match = text.wholeMatch(of: pattern)?.output else { return nil }
    let numbers = [match.1, match.2, match.3, match.4, match.5, match.6].compactMap { Int($0) }
    guard numbers.count == 6 else { return nil }
    var offset = 0
    if let hours = match.10.flatMap({ Int($0) }), let minutes = match.11.flatMap({ Int($0) }) {
      offset = (hours * 3600 + minutes * 60) * (match.9 == "-" ? -1 : 1)
    }
    let fraction = match.7.map { String(($0 + "000000").prefix(6)) }.flatMap { Int($0) } ?? 0
    let time = CivilTime(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], offset: offset)
    guard time.isValid else { return nil }
    return time.seconds * 1_000_000 + fraction
  }
}

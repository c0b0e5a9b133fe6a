// Converts signal descriptions to a file for signals.d: OBDb's signal sets (JSON) and Torque's tables (CSV). Each signal must pass the
// validation of the configuration. Ambiguous signals are skipped with a reason, because a misread formula gives wrong numbers. The input is
// untrusted: the import never traps, and all text in the result is bounded and escaped.

import Protocols

public struct ImportedSignals: ImportResult {
  /// The maximum size of an input file.
  public static let maxFileSize = 8 << 20
  /// The maximum size of the result, in bytes. A configuration file may have 1 MiB, including its header comment and device names.
  private static let maxResultSize = 900_000

  private(set) var signals: [ImportedSignal] = []
  public private(set) var remarks = ImportRemarks()
  private var names = UniqueNames(reserved: SignalRules.reservedNames)
  /// The size of the result, in bytes.
  private var size = 0

  public var count: Int { signals.count }

  public static let emptyMessage = "no signals found; use an OBDb signal set, a Torque CSV file or a DBC file"

  /// Parses a file in either format; throws for other formats. `year` selects the signals of one model year in a signal set; nil selects
  /// all.
  public init(_ bytes: [UInt8], year: Int? = nil) throws(ValueError) {
    let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let text = bytes.starts(with: byteOrderMark) ? Array(bytes.dropFirst(byteOrderMark.count)) : bytes
    guard bytes.count <= Self.maxFileSize else { throw ValueError("file larger than 8 MiB; check that it is the right file") }
    guard let first = text.first(where: { !isBlank($0) }) else { throw ValueError("file is empty; check that it is the right file") }
    if first == UInt8(ascii: "{") {
      try SignalSet.read(text, year: year, into: &self)
    } else {
      guard text.prefix(4096).allSatisfy({ $0 >= 0x20 || isBlank($0) }) else {
        throw ValueError("neither JSON nor a text table; use an OBDb signal set or a Torque CSV file")
      }
      if year != nil { note("year", "a Torque table has no model years: all signals are imported") }
      TorqueTable.read(text, into: &self)
    }
  }

  mutating func skip(_ place: String, _ message: String) { remarks.skip(place, message) }
  mutating func note(_ place: String, _ message: String) { remarks.note(place, message) }

  /// Adds a signal if it passes the validation. `id` is the base of its name.
  mutating func add(_ signal: ImportedSignal, id: String, place: String) {
    var signal = signal
    signal.name = names.name(from: id)
    var problems: [OptionError] = []
    guard let request = SignalRules.request(of: signal.section, &problems) else {
      let message = problems.map { error in
        (error.option.map { $0 == "request" ? "request \(visible(signal.request, limit: 20)): " : "\($0): " } ?? "")
          + (error.offset.map { "character \($0 + 1): " } ?? "") + error.message
      }
      return skip(place, message.joined(separator: "; "))
    }
    signal.request = request
    size += signal.lines.reduce(60) { $0 + $1.utf8.count + 1 }
    guard size <= Self.maxResultSize else { return skip(place, "the file would be too long for the configuration; split it in two") }
    names.insert(signal.name)
    signals.append(signal)
  }

  /// Returns the text of a file for signals.d, which names its source. `device`: the device that the file is for; nil for all devices of
  /// the kind.
  public func file(from source: String, device: String? = nil) -> String {
    signalFile(
      signals.map(\.lines), from: source, device: device,
      remark: "Values outside of min and max are absent. Check the signals: a car may respond differently from the source.")
  }
}

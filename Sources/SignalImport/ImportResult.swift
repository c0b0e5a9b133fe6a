// What the imports of all formats return: a file for signals.d, and what was skipped.

import Protocols

/// The result of an import.
public protocol ImportResult: Sendable {
  /// The number of imported signals.
  var count: Int { get }
  var remarks: ImportRemarks { get }
  /// What to do if there is neither a signal nor a remark.
  static var emptyMessage: String { get }
  /// Returns the text of a file for signals.d, which names its source. `device`: the device that the file is for; nil for all devices of
  /// the kind.
  func file(from source: String, device: String?) -> String
}

extension ImportResult {
  public var skipped: [ImportRemarks.Remark] { remarks.skipped }
  public var skippedCount: Int { remarks.skippedCount }
  public var notes: [ImportRemarks.Remark] { remarks.notes }

  /// Why the result is empty, in one line.
  public var failure: String {
    guard let first = remarks.skipped.first else { return Self.emptyMessage }
    let others = remarks.skippedCount - 1
    return "\(first.place): \(first.message)\(others == 0 ? "" : "; \(others) more were skipped")"
  }
}

/// Why signals were skipped, and remarks on imported signals.
public struct ImportRemarks: Sendable, Equatable {
  public struct Remark: Sendable, Equatable {
    /// The place in the input: `line 7`, or the id of the signal.
    public var place: String
    public var message: String
  }

  /// The first skipped signals; `skippedCount` counts all.
  public private(set) var skipped: [Remark] = []
  public private(set) var skippedCount = 0
  /// Remarks on imported signals.
  public private(set) var notes: [Remark] = []

  private static let maxCount = 1000

  mutating func skip(_ place: String, _ message: String) {
    skippedCount += 1
    if skipped.count < Self.maxCount { skipped.append(Remark(place: place, message: message)) }
  }

  mutating func note(_ place: String, _ message: String) {
    if notes.count < Self.maxCount { notes.append(Remark(place: place, message: message)) }
  }
}

/// The text of a file for signals.d with these sections, each of which is a list of lines. `remark`: what the owner must know about them.
func signalFile(_ sections: some Sequence<[String]>, from source: String, device: String?, remark: String) -> String {
  var lines = [
    "# Signals imported by vehiclectl import from \(visible(source, limit: 200)).",
    "# Put this file into signals.d beside vehicled.toml, then run: vehicled --check-config, and vehiclectl reload.", "# \(remark)",
  ]
  for section in sections {
    lines.append("")
    lines += section
    if let device { lines.append("devices = [\"\(device)\"]") }
  }
  return lines.joined(separator: "\n") + "\n"
}

/// Text as a string of TOML, without invisible characters.
func quoted(_ text: String) -> String {
  var quoted = "\""
  for scalar in visible(text, limit: SignalRules.maxFormulaLength).unicodeScalars {
    if scalar == "\"" || scalar == "\\" { quoted += "\\" }
    quoted.unicodeScalars.append(scalar)
  }
  return quoted + "\""
}

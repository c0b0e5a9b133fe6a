// Converts a DBC file to a file for signals.d, with sections for devices of kind can. Each signal must pass the validation of the
// configuration. The input is untrusted: all text in the result is bounded and escaped.

import Protocols

public struct ImportedCANSignals: ImportResult {
  /// The maximum size of the result, in bytes. A configuration file may have 1 MiB, including its header comment and device names.
  private static let maxResultSize = 900_000
  public static let emptyMessage = "no signals found; check that the file has BO_ and SG_ statements"

  private(set) var signals: [ImportedCANSignal] = []
  public private(set) var remarks = ImportRemarks()
  /// The number of signals that were not selected.
  private(set) var unselectedCount = 0
  private var names = UniqueNames(reserved: CANSignalRules.reservedNames)
  private var size = 0

  public var count: Int { signals.count }

  /// Whether a file is a DBC file, by its first word.
  public static func isDBC(_ bytes: [UInt8]) -> Bool { DBCFile.isDBC(Self.text(bytes)) }

  /// Parses a file. `patterns`: shell patterns for the names of messages and signals; empty: all signals are selected.
  public init(_ bytes: [UInt8], only patterns: [String] = []) throws(ValueError) {
    guard bytes.count <= ImportedSignals.maxFileSize else { throw ValueError("file larger than 8 MiB; check that it is the right file") }
    let file = DBCFile(Self.text(bytes))
    for error in file.errors { remarks.skip("line \(error.line)", error.message) }
    if file.isAbandoned { remarks.note("file", "more than \(file.errors.count - 1) mistakes: the rest of the file was not read") }
    let ambiguous = Dictionary(grouping: file.messages.flatMap(\.signals).map(\.fullName), by: \.self).filter { $1.count > 1 }
    let globs = patterns.map { Glob(Substring($0.lowercased())) }
    for message in file.messages {
      add(message, { Self.selects($0, of: message, globs) }, isAmbiguous: { ambiguous[$0] != nil })
    }
    let count = file.messages.reduce(0) { $0 + $1.signals.count }
    if count > 0, unselectedCount == count { throw ValueError(Self.nothingSelected(patterns, file.messages)) }
  }

  /// Whether a pattern matches the signal or its message, by the name in the file or by that of the property. Capital letters are the same
  /// as small ones.
  private static func selects(_ signal: DBCSignal, of message: DBCMessage, _ globs: [Glob]) -> Bool {
    guard !globs.isEmpty else { return true }
    let names = [signal.name, signal.fullName, message.name, message.fullName].map { $0.lowercased() }
    var properties = UniqueNames(reserved: [])
    let property = properties.name(from: signal.fullName, splitsWords: true)
    return globs.contains { glob in glob.matches(property) || names.contains { glob.matches($0) } }
  }

  private static func nothingSelected(_ patterns: [String], _ messages: [DBCMessage]) -> String {
    let names = messages.filter { !$0.signals.isEmpty }.prefix(3).map { visible($0.fullName, limit: 40) }
    let examples = names.isEmpty ? "" : ", such as \(names.joined(separator: ", "))"
    let list = patterns.map { "\"\(visible($0, limit: 40))\"" }.joined(separator: ", ")
    return "no message or signal matches \(list); use names of the file\(examples), or patterns with *"
  }

  /// The bytes without a byte order mark.
  private static func text(_ bytes: [UInt8]) -> [UInt8] {
    let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
    return bytes.starts(with: byteOrderMark) ? Array(bytes.dropFirst(byteOrderMark.count)) : bytes
  }

  /// Adds the selected signals of a message. `isAmbiguous`: whether several messages have a signal of this name.
  private mutating func add(_ message: DBCMessage, _ isSelected: (DBCSignal) -> Bool, isAmbiguous: (String) -> Bool) {
    let selected = message.signals.filter(isSelected)
    unselectedCount += message.signals.count - selected.count
    guard !selected.isEmpty else { return }
    let messagePlace = "line \(message.line) (\(visible(message.name, limit: 64)))"
    if message.length > CANFrame.maxCount { remarks.note(messagePlace, "CAN FD, or several frames: only 8 bytes are read") }
    if message.isAssumed29Bit {
      remarks.note(
        messagePlace, "the identifier \(message.identifier.text) does not fit into 11 bits, so it is read as one of 29 bits; check it")
    }
    let multiplexing = DBCMultiplexing(message)
    for signal in selected {
      let place = "line \(signal.line) (\(visible(signal.fullName, limit: 64)))"
      do throws(ValueError) {
        var imported = try ImportedCANSignal(signal, of: message, conditions: try multiplexing.conditions(of: signal))
        let id = isAmbiguous(signal.fullName) ? "\(message.fullName)-\(signal.fullName)" : signal.fullName
        imported.name = names.name(from: id, splitsWords: true)
        let problems = CANSignalRules.problems(of: imported.section)
        guard problems.isEmpty else {
          throw ValueError(problems.map { ($0.option.map { "\($0): " } ?? "") + $0.message }.joined(separator: "; "))
        }
        size += imported.lines.reduce(60) { $0 + $1.utf8.count + 1 }
        guard size <= Self.maxResultSize else { throw ValueError("the file would be too long for the configuration; split it in two") }
        if !imported.unusedLabels.isEmpty {
          let texts = visible(imported.unusedLabels.prefix(3).joined(separator: ", "), limit: 100)
          remarks.note(place, "the texts of valid values are left out: \(texts)")
        }
        names.insert(imported.name)
        signals.append(imported)
      } catch {
        remarks.skip(place, error.description)
      }
    }
  }

  public func file(from source: String, device: String? = nil) -> String {
    signalFile(
      signals.map(\.lines), from: source, device: device,
      remark: "Remove the sections that you do not need. Values outside of min and max are absent.")
  }
}

/// Which signals a frame of a message contains.
struct DBCMultiplexing {
  private let signals: [String: DBCSignal]
  /// The multiplexers that select signals, if they are not named.
  private let selectors: [DBCSignal]
  private static let maxDepth = 8

  init(_ message: DBCMessage) {
    signals = Dictionary(message.signals.map { ($0.name, $0) }) { first, _ in first }
    selectors = message.signals.filter { $0.multiplexing == .selector }
  }

  /// The conditions on multiplexers that a frame must meet to contain a signal. A multiplexer can itself depend on another one.
  func conditions(of signal: DBCSignal) throws(ValueError) -> [CANCondition] {
    var (conditions, current): ([CANCondition], DBCSignal) = ([], signal)
    while let (selector, ranges) = try selection(of: current) {
      guard conditions.count < Self.maxDepth else { throw ValueError("its multiplexers select each other; correct SG_MUL_VAL_") }
      // The ranges of extended multiplexing can extend beyond what the bits can hold.
      let limit = selector.field.maxRaw
      let possible = ranges.filter { $0.lowerBound <= limit }.map { $0.clamped(to: 0...limit) }
      guard !possible.isEmpty else {
        let value = ranges.map { "\($0.lowerBound)" }.joined(separator: ", ")
        let bits = "its multiplexer \(visible(selector.name, limit: 40)) has \(selector.field.length) bits"
        throw ValueError("\(bits) and is never \(value); correct one of the two")
      }
      conditions.append(CANCondition(selector.field, possible))
      current = selector
    }
    return conditions
  }

  private func selection(of signal: DBCSignal) throws(ValueError) -> (DBCSignal, [ClosedRange<UInt64>])? {
    if let (name, ranges) = signal.selection {
      guard let selector = signals[name], !ranges.isEmpty else {
        throw ValueError("its multiplexer \(visible(name, limit: 40)) is not in the message; correct SG_MUL_VAL_")
      }
      return (selector, ranges)
    }
    guard case .selected(let value, _) = signal.multiplexing else { return nil }
    guard selectors.count == 1 else {
      let found = selectors.isEmpty ? "no multiplexer" : "several multiplexers"
      throw ValueError("the message has \(found); mark one with M, or add SG_MUL_VAL_")
    }
    return (selectors[0], [value...value])
  }
}

extension DBCSignal {
  /// The name without the limit of 32 characters.
  var fullName: String { longName ?? name }
}

extension DBCMessage {
  var fullName: String { longName ?? name }
}

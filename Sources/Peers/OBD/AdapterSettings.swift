// The settings of an ELM327, and the AT commands that only change a setting.
// Source: the command summary of the ELM327 v1.5 family.

import Protocols

/// The settings of an adapter. The initial values are those after a reset.
struct AdapterSettings: Sendable, Equatable {
  var echo = true
  var linefeeds = false
  /// Whether line ends are lost between the chip and the host (fault `no-lf-cr`).
  var losesLineEnds = false
  /// Whether K-line messages are printed without their checksum (fault `no-checksum`).
  var omitsChecksums = false
  /// Whether short messages are padded when headers are off (fault `pad-zeros`).
  var padsWithoutHeaders = false
  /// Whether the adapter detects the protocol although one is selected (fault `ignore-protocol`).
  var alwaysDetectsProtocol = false
  var spaces = true
  var headers = false
  var displaysDLC = false
  var autoFormat = true
  var flowControl = true
  /// ATM1: a selected protocol survives a reset.
  var memory = true
  /// ATAT: 0, 1 or 2.
  var adaptive = 1
  /// ATST, in units of 4.096 ms.
  var timeout = AdapterSettings.defaultTimeout
  /// STPTO, a whole number of milliseconds, which replaces ATST.
  var exactTimeout: Nanoseconds?
  /// ATSH, or nil for the functional address of the protocol.
  var header: UInt32?
  /// ATCP: the first five bits of a 29-bit identifier, used if ATSH did not set them.
  var priority: UInt8 = 0x18
  /// ATCEA: the first byte of each sent CAN frame, or nil if there is none.
  var extendedAddress: UInt8?
  /// ATTA: the first byte of each received CAN frame, if there is an extended address.
  var testerAddress: UInt8 = 0xF1
  /// ATCF: the receive filter, or nil for the default of the protocol.
  var filter: UInt32?
  /// ATCM: the mask of the receive filter, or nil for the default of the protocol.
  var mask: UInt32?
  var flowMode = 0
  var flowHeader: UInt32?
  var flowData: [UInt8] = []
  var obdProtocol = SimulatedProtocol()

  static let defaultTimeout = 0x32
  private static let switches: [String: WritableKeyPath<AdapterSettings, Bool> & Sendable] = [
    "E": \.echo, "L": \.linefeeds, "S": \.spaces, "H": \.headers, "D": \.displaysDLC, "CAF": \.autoFormat, "CFC": \.flowControl,
    "M": \.memory,
  ]
  /// Commands that are acknowledged but have no effect in this simulation.
  private static let commandsWithoutEffect: Set<String> = ["AL", "NL", "R0", "R1", "V0", "V1", "CSM0", "CSM1", "KW0", "KW1", "FE", "SS"]

  /// Applies an AT command (without the prefix, in capitals, without spaces). Returns false if the command is unknown.
  mutating func apply(_ command: String) -> Bool {
    if let last = command.last, last == "0" || last == "1", let path = AdapterSettings.switches[String(command.dropLast())] {
      self[keyPath: path] = last == "1"
      return true
    }
    if AdapterSettings.commandsWithoutEffect.contains(command) { return true }
    func argument(of name: String) -> Substring? { command.hasPrefix(name) ? command.dropFirst(name.count) : nil }
    if let text = argument(of: "CRA") { return setReceiveFilter(text) }
    if command == "AR" { return setReceiveFilter("") }
    if command == "CEA" {
      extendedAddress = nil
      return true
    }
    if let text = argument(of: "CEA") { return store(AdapterSettings.byte(text), \.extendedAddress) }
    if let text = argument(of: "TA") { return store(AdapterSettings.byte(text), \.testerAddress) }
    // K-lines have no filter in this simulation.
    if let text = argument(of: "SR") { return AdapterSettings.byte(text) != nil }
    if let text = argument(of: "FCSH") { return store(AdapterSettings.address(text), \.flowHeader) }
    if let text = argument(of: "FCSD") { return store(AdapterSettings.bytes(text, upTo: 5), \.flowData) }
    if let text = argument(of: "FCSM") { return setFlowControlMode(text) }
    if let text = argument(of: "CF") { return store(AdapterSettings.address(text), \.filter) }
    if let text = argument(of: "CM") { return store(AdapterSettings.address(text), \.mask) }
    if let text = argument(of: "CP") { return store(AdapterSettings.byte(text).flatMap { $0 < 0x20 ? $0 : nil }, \.priority) }
    if let text = argument(of: "SH") { return setHeader(text) }
    if let text = argument(of: "AT") { return store(text.count == 1 ? Int(text).flatMap { $0 <= 2 ? $0 : nil } : nil, \.adaptive) }
    if let text = argument(of: "ST"), (1...2).contains(text.count), let value = Int(text, radix: 16), value >= 0 {
      timeout = value == 0 ? AdapterSettings.defaultTimeout : value
      exactTimeout = nil
      return true
    }
    if let text = argument(of: "SP") ?? argument(of: "TP") { return store(SimulatedProtocol(text), \.obdProtocol) }
    return false
  }

  private mutating func store<Setting>(_ value: Setting?, _ path: WritableKeyPath<AdapterSettings, Setting>) -> Bool {
    if let value { self[keyPath: path] = value }
    return value != nil
  }

  private mutating func store<Setting>(_ value: Setting?, _ path: WritableKeyPath<AdapterSettings, Setting?>) -> Bool {
    if let value { self[keyPath: path] = value }
    return value != nil
  }

  /// ATSH: 8 digits set the whole identifier, fewer keep the priority bits.
  private mutating func setHeader(_ text: Substring) -> Bool {
    guard let number = AdapterSettings.address(text) else { return false }
    if text.count == 8 { priority = UInt8(number >> 24 & 0x1F) }
    header = number & 0xFF_FFFF
    return true
  }

  /// ATCRA: one identifier, with X for any digit; without an argument, the defaults of the protocol.
  private mutating func setReceiveFilter(_ text: Substring) -> Bool {
    if text.isEmpty { (filter, mask) = (nil, nil) }
    guard !text.isEmpty else { return true }
    guard text.count != 6, let id = AdapterSettings.address(String(text.map { $0 == "X" ? "0" : $0 })[...]) else { return false }
    (filter, mask) = (id, text.reduce(0) { $0 << 4 | ($1 == "X" ? 0 : 0xF) })
    return true
  }

  /// ATFCSM: mode 1 requires a header (ATFCSH) and data (ATFCSD), mode 2 only data.
  private mutating func setFlowControlMode(_ text: Substring) -> Bool {
    switch text {
    case "0": break
    case "1": guard flowHeader != nil, !flowData.isEmpty else { return false }
    case "2": guard !flowData.isEmpty else { return false }
    default: return false
    }
    flowMode = text.utf8.first.map { Int($0) - 48 } ?? 0
    return true
  }

  /// Parses an address of 3, 6 or 8 hex digits.
  static func address(_ text: Substring) -> UInt32? {
    guard [3, 6, 8].contains(text.count), text.allSatisfy(\.isHexDigit), let number = UInt32(text, radix: 16) else { return nil }
    return number
  }

  private static func byte(_ text: Substring) -> UInt8? {
    guard (1...2).contains(text.count), text.allSatisfy(\.isHexDigit) else { return nil }
    return UInt8(text, radix: 16)
  }

  private static func bytes(_ text: Substring, upTo limit: Int) -> [UInt8]? {
    guard let bytes = HexDigits.bytes(text.utf8), (1...limit).contains(bytes.count) else { return nil }
    return bytes
  }
}

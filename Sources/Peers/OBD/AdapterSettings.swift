// What AT commands set in an ELM327, and the commands that only set something. It runs nothing and prints nothing.
// Facts: the command summary of the ELM327 v1.5 family.

import Protocols

/// The settings of an adapter; a new value is what a reset leaves.
struct AdapterSettings: Sendable, Equatable {
  var echo = true
  var linefeeds = false
  /// Somebody between the chip and the host drops them all.
  var losesLineEnds = false
  /// It leaves out a K-line's checksums; prints zeros behind a short message; searches for the bus whatever it is told.
  var losesChecksums = false
  var padsBare = false
  var searchesAlways = false
  var spaces = true
  var headers = false
  var lengthDigit = false
  var autoFormat = true
  var flowControl = true
  /// A chosen protocol is kept through a reset.
  var memory = true
  /// 0, 1 or 2.
  var adaptive = 1
  /// In units of 4.096 ms.
  var timeout = AdapterSettings.usualTimeout
  /// STPTO, which goes to the millisecond.
  var exactTimeout: Nanoseconds?
  /// What ATSH said; nil: what the protocol asks everybody under.
  var header: UInt32?
  /// The first five bits of a 29-bit identifier, where ATSH left them out.
  var priority: UInt8 = 0x18
  /// What a frame's id must be, and which of its bits count; nil: as the protocol has it.
  var filter: UInt32?
  var mask: UInt32?
  var flowMode = 0
  var flowHeader: UInt32?
  var flowData: [UInt8] = []
  var busProtocol = BusProtocol()

  static let usualTimeout = 0x32
  private static let switches: [String: WritableKeyPath<AdapterSettings, Bool> & Sendable] = [
    "E": \.echo, "L": \.linefeeds, "S": \.spaces, "H": \.headers, "D": \.lengthDigit, "CAF": \.autoFormat, "CFC": \.flowControl,
    "M": \.memory,
  ]
  /// Understood, and without effect on what this adapter does.
  private static let idle: Set<String> = ["AL", "NL", "R0", "R1", "V0", "V1", "CSM0", "CSM1", "KW0", "KW1", "FE", "SS"]

  /// Does what a command says (the letters behind AT, in capitals, without blanks), or returns false: not understood.
  mutating func apply(_ command: String) -> Bool {
    if let last = command.last, last == "0" || last == "1", let path = AdapterSettings.switches[String(command.dropLast())] {
      self[keyPath: path] = last == "1"
      return true
    }
    if AdapterSettings.idle.contains(command) { return true }
    func argument(of name: String) -> Substring? { command.hasPrefix(name) ? command.dropFirst(name.count) : nil }
    if let text = argument(of: "CRA") { return receive(text) }
    if command == "AR" { return receive("") }
    // K-lines have nothing to filter here: whoever answers is heard.
    if let text = argument(of: "SR") { return AdapterSettings.byte(text) != nil }
    if let text = argument(of: "FCSH") { return store(AdapterSettings.address(text), \.flowHeader) }
    if let text = argument(of: "FCSD") { return store(AdapterSettings.bytes(text, upTo: 5), \.flowData) }
    if let text = argument(of: "FCSM") { return control(text) }
    if let text = argument(of: "CF") { return store(AdapterSettings.address(text), \.filter) }
    if let text = argument(of: "CM") { return store(AdapterSettings.address(text), \.mask) }
    if let text = argument(of: "CP") { return store(AdapterSettings.byte(text).flatMap { $0 < 0x20 ? $0 : nil }, \.priority) }
    if let text = argument(of: "SH") { return address(as: text) }
    if let text = argument(of: "AT") { return store(text.count == 1 ? Int(text).flatMap { $0 <= 2 ? $0 : nil } : nil, \.adaptive) }
    if let text = argument(of: "ST"), (1...2).contains(text.count), let value = Int(text, radix: 16), value >= 0 {
      timeout = value == 0 ? AdapterSettings.usualTimeout : value
      exactTimeout = nil
      return true
    }
    if let text = argument(of: "SP") ?? argument(of: "TP") { return store(BusProtocol(text), \.busProtocol) }
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

  /// ATSH: 8 digits say everything, fewer leave the priority as it is.
  private mutating func address(as text: Substring) -> Bool {
    guard let number = AdapterSettings.address(text) else { return false }
    if text.count == 8 { priority = UInt8(number >> 24 & 0x1F) }
    header = number & 0xFF_FFFF
    return true
  }

  /// ATCRA: one id, with X for any digit; nothing brings the protocol's own back.
  private mutating func receive(_ text: Substring) -> Bool {
    if text.isEmpty { (filter, mask) = (nil, nil) }
    guard !text.isEmpty else { return true }
    guard text.count != 6, let id = AdapterSettings.address(String(text.map { $0 == "X" ? "0" : $0 })[...]) else { return false }
    (filter, mask) = (id, text.reduce(0) { $0 << 4 | ($1 == "X" ? 0 : 0xF) })
    return true
  }

  /// ATFCSM: the modes that use own data need them first.
  private mutating func control(_ text: Substring) -> Bool {
    switch text {
    case "0": break
    case "1": guard flowHeader != nil, !flowData.isEmpty else { return false }
    case "2": guard !flowData.isEmpty else { return false }
    default: return false
    }
    flowMode = text.utf8.first.map { Int($0) - 48 } ?? 0
    return true
  }

  /// 3 digits, or 6 or 8.
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

// ELComm's messages out of a stream of bytes, fed one byte at a time, so that no cut can make a difference. A message ends
// with the second digit behind its decimal point; what stands before it in the buffer and is no part of it is dropped. The
// decoder never keeps more than 64 bytes, and never makes up a field.
// Facts: ProjectTORQ.ino (what the board prints), ELCommunicationProtocol.swift (fields behind the fourth are extensions).
//
//   12$88$1$0.35     speed in mph, battery in %, connected, distance in miles; no terminator, no check sum

/// What the board says in one message.
struct ELCommMessage: Sendable, Equatable {
  /// mph, cut towards 0, negative backwards; 255 before the VESC has answered.
  var speed: Int
  /// Percent, not clamped: -355 before the voltage was read, 255 before the VESC has answered.
  var battery: Int
  /// The VESC has answered and the board has not latched off.
  var connected: Bool
  /// Hundredths of a mile since the board was reset.
  var distance: Int
}

/// Takes the board's bytes.
struct ELCommDecoder: Sendable {
  /// No more bytes than these ever wait.
  static let limit = 64
  /// |mph| and |%| beyond these are no board's: what is glued before a number makes it too large.
  static let speeds = -255...255
  static let charges = -999...999

  private(set) var buffer: [UInt8] = []
  /// A message has just come, and what follows may be fields more of it.
  private(set) var isOpen = false
  /// The fields behind the fourth of the last message that was closed.
  private(set) var extra: [String] = []
  /// Runs of bytes that were no message, and the last of them.
  private(set) var badRuns = 0
  private(set) var lastBad: [UInt8] = []
  /// The run goes on.
  private var isInBadRun = false
  private var lastSpeed = 0

  /// Takes one byte; the message that is whole with it.
  mutating func take(_ byte: UInt8) -> ELCommMessage? {
    guard byte > 0x20, byte < 0x7F else {
      // A module's idle byte, or the line end that another author's board may print.
      let isBlank = [0x00, 0x0A, 0x0D, 0x20].contains(byte) && (isOpen || buffer.isEmpty)
      close()
      if !isBlank { drop(with: byte) }
      return nil
    }
    if isOpen, buffer.isEmpty, byte != dollar { close() }
    if !isOpen, !Self.isPart(byte) {
      drop(with: byte)
      return nil
    }
    buffer.append(byte)
    if endsInHundredths, let message = match() { return message }
    if buffer.count >= Self.limit || endsInHundredths && !isOpen { drop() }
    return nil
  }

  /// Nothing more belongs to the last message: there was silence, or a new poll goes out.
  mutating func close() {
    guard isOpen else { return }
    isOpen = false
    extra = Self.fields(buffer[...])
    buffer.removeAll(keepingCapacity: true)
  }

  /// What has come so far belongs to nothing that will.
  mutating func flush() {
    close()
    drop()
    isInBadRun = false
  }

  /// The link is another one.
  mutating func reset() {
    buffer.removeAll(keepingCapacity: true)
    (isOpen, isInBadRun, extra) = (false, false, [])
  }

  private mutating func drop(with byte: UInt8? = nil) {
    isOpen = false
    let bytes = buffer + (byte.map { [$0] } ?? [])
    buffer.removeAll(keepingCapacity: true)
    guard !bytes.isEmpty else { return }
    if !isInBadRun {
      badRuns &+= 1
      lastBad = []
    }
    isInBadRun = true
    lastBad += bytes.prefix(Self.limit - lastBad.count)
  }

  private static func isPart(_ byte: UInt8) -> Bool { isDigit(byte) || byte == dollar || byte == minus || byte == dot }

  private var endsInHundredths: Bool {
    let count = buffer.count
    return count > 3 && buffer[count - 3] == dot && isDigit(buffer[count - 2]) && isDigit(buffer[count - 1])
  }

  /// The message that ends where the buffer does. What stands before it is the extension of the one before, or dropped.
  private mutating func match() -> ELCommMessage? {
    let fields = buffer.split(separator: dollar, omittingEmptySubsequences: false)
    guard fields.count >= 4 else { return nil }
    let last = fields.suffix(4).map { $0 }
    guard
      let battery = Self.number(last[1]), Self.charges.contains(battery), last[2].count == 1, let flag = last[2].first,
      flag == zero || flag == zero + 1, let distance = Self.hundredths(last[3]), let start = speedStart(in: last[0]),
      let speed = Self.number(buffer[start..<last[0].endIndex])
    else { return nil }
    let before = buffer[..<start]
    if isOpen {
      extra = Self.fields(before)
      isOpen = false
    } else if !before.isEmpty {
      let rest = Array(before)
      buffer = rest
      drop()
    }
    buffer.removeAll(keepingCapacity: true)
    (isOpen, isInBadRun, lastSpeed) = (true, false, speed)
    return ELCommMessage(speed: speed, battery: battery, connected: flag != zero, distance: distance)
  }

  /// Where the speed begins in the field that ends with it. All of the field is it, or there is none; but behind an extension
  /// field, of which a part must be left, it is what is nearest to the last speed.
  private func speedStart(in field: ArraySlice<UInt8>) -> Int? {
    let digits = field.reversed().prefix(while: isDigit).count
    let starts = (field.endIndex - digits..<field.endIndex).map { start in
      start > field.startIndex && field[start - 1] == minus ? start - 1 : start
    }
    let possible = starts.filter { Self.number(field[$0...]).map(Self.speeds.contains) ?? false }
    guard isOpen else { return possible.first == field.startIndex ? field.startIndex : nil }
    let behind = possible.filter { $0 > field.startIndex }
    return behind.min { leap(to: field[$0...]) < leap(to: field[$1...]) }
  }

  private func leap(to digits: ArraySlice<UInt8>) -> Int {
    // The board prints no leading zeros.
    let isOdd = digits.count > 1 && digits.first == zero
    return isOdd ? .max : abs((Self.number(digits) ?? .max / 2) - lastSpeed)
  }

  /// One to five digits, with or without a minus.
  private static func number(_ text: ArraySlice<UInt8>) -> Int? {
    let digits = text.first == minus ? text.dropFirst() : text
    guard (1...5).contains(digits.count), digits.allSatisfy(isDigit) else { return nil }
    let value = digits.reduce(0) { $0 * 10 + Int($1 - zero) }
    return text.first == minus ? -value : value
  }

  /// One to six digits, a point and two more, with or without a minus. The board counts them in 16 bits.
  private static func hundredths(_ text: ArraySlice<UInt8>) -> Int? {
    let digits = text.first == minus ? text.dropFirst() : text
    guard (4...9).contains(digits.count), digits[digits.endIndex - 3] == dot else { return nil }
    let all = digits.filter { $0 != dot }
    guard all.count == digits.count - 1, all.allSatisfy(isDigit) else { return nil }
    let value = all.reduce(0) { $0 * 10 + Int($1 - zero) }
    let signed = text.first == minus ? -value : value
    return Int(Int16.min)...Int(Int16.max) ~= signed ? signed : nil
  }

  /// `$7$ok` as a person reads it: 7 and ok.
  private static func fields(_ bytes: ArraySlice<UInt8>) -> [String] {
    bytes.split(separator: dollar, omittingEmptySubsequences: false).dropFirst().map { String(decoding: $0, as: UTF8.self) }
  }
}

private let dollar = UInt8(ascii: "$")
private let minus = UInt8(ascii: "-")
private let zero = UInt8(ascii: "0")

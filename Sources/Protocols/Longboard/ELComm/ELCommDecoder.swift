// Decodes ELComm messages from a stream, one byte at a time, so that the result does not depend on how the stream was split. A message
// ends with the second digit after its decimal point. One that directly follows a part of another is dropped with it, because its speed
// may start with digits of that part. At most 64 bytes are buffered, and a missing field is never guessed.
// Source: ProjectTORQ.ino (what the board prints), ELCommunicationProtocol.swift (fields after the fourth are extensions).
//
//   12$88$1$0.35     speed in mph, battery in %, connected, distance in miles; no terminator, no checksum

/// One message of the board.
struct ELCommMessage: Sendable, Equatable {
  /// mph, truncated towards 0, negative is backwards; 255 before the VESC has responded.
  let speed: Int
  /// Percent, not clamped: -355 before the voltage was measured, 255 before the VESC has responded.
  let battery: Int
  /// Whether the VESC has responded, and the board has not switched itself off permanently.
  let connected: Bool
  /// Hundredths of a mile since the board was reset.
  let distance: Int
}

/// Decodes the board's bytes.
struct ELCommDecoder: Sendable {
  /// The maximum number of buffered bytes.
  static let limit = 64
  // A number outside these ranges consists of two numbers without a separator.
  /// The valid speeds, in mph.
  static let speeds = -255...255
  /// The valid states of charge, in %.
  static let charges = -999...999

  private(set) var buffer: [UInt8] = []
  /// Whether a message has just ended, after which additional fields may follow.
  private(set) var isOpen = false
  /// The additional fields of the last completed message.
  private(set) var extra: [String] = []
  /// The number of runs of invalid bytes.
  private(set) var badRuns = 0
  /// The last run of invalid bytes.
  private(set) var lastBad: [UInt8] = []
  /// Whether the last byte was part of a run of invalid bytes.
  private var isInBadRun = false
  /// The speed of the last message on this link.
  private var lastSpeed: Int?
  /// The last two digits of a message, also of a dropped one, that the next one directly follows.
  private var digitsBefore: [UInt8] = []
  /// The speed of a message that was dropped because it is unlikely.
  private var doubtedSpeed: Int?
  /// A greater change from one message to the next is unlikely, in mph.
  private static let likelyChange = 5

  /// Handles one byte; returns the message that it completes, if any.
  mutating func decode(_ byte: UInt8) -> ELCommMessage? {
    guard byte > 0x20, byte < 0x7F else {
      // An idle byte of the Bluetooth module, a blank or an optional line end.
      let isBlank = [0x00, 0x0A, 0x0D, 0x20].contains(byte) && (isOpen || buffer.isEmpty)
      close()
      if !isBlank { drop(with: byte) }
      return nil
    }
    if isOpen, buffer.isEmpty, byte != dollar { (isOpen, extra) = (false, []) }
    if !isOpen, !Self.isPart(byte) {
      drop(with: byte)
      return nil
    }
    buffer.append(byte)
    if endsInHundredths, let message = match() { return message }
    if endsInHundredths, !isOpen {
      let digits = Array(buffer.suffix(2))
      drop()
      digitsBefore = digits
    } else if buffer.count >= Self.limit {
      drop()
    }
    return nil
  }

  /// Completes the additional fields of the last message, after a pause or before a new poll.
  mutating func close() {
    // Buffered bytes follow these digits.
    if isOpen || buffer.isEmpty { digitsBefore = [] }
    guard isOpen else { return }
    isOpen = false
    extra = Self.fields(buffer[...])
    buffer.removeAll(keepingCapacity: true)
  }

  /// Discards incomplete data.
  mutating func flush() {
    close()
    drop()
    isInBadRun = false
  }

  /// Resets the decoder for a new link.
  mutating func reset() {
    buffer.removeAll(keepingCapacity: true)
    (isOpen, isInBadRun, extra, digitsBefore, lastSpeed, doubtedSpeed) = (false, false, [], [], nil, nil)
  }

  private mutating func drop(with byte: UInt8? = nil) {
    (isOpen, digitsBefore) = (false, [])
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

  /// Removes and returns the message at the end of the buffer. Data before it is an additional field of the previous message.
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
    } else if !before.isEmpty || isDoubtful(speed, in: last[0]) {
      return nil
    }
    digitsBefore = Array(buffer.suffix(2))
    buffer.removeAll(keepingCapacity: true)
    (isOpen, isInBadRun, lastSpeed, doubtedSpeed) = (true, false, speed, nil)
    return ELCommMessage(speed: speed, battery: battery, connected: flag != zero, distance: distance)
  }

  /// The index at which the speed starts in a field, or nil. Usually the whole field must be the speed. Directly after a message, the field
  /// starts with the end of an additional field, without a separator. It is then split so that the speed is nearest to the last speed.
  private func speedStart(in field: ArraySlice<UInt8>) -> Int? {
    let digits = field.reversed().prefix(while: isDigit).count
    let starts = (field.endIndex - digits..<field.endIndex).map { start in
      start > field.startIndex && field[start - 1] == minus ? start - 1 : start
    }
    let possible = starts.filter { Self.number(field[$0...]).map(Self.speeds.contains) ?? false }
    guard isOpen else { return possible.first == field.startIndex ? field.startIndex : nil }
    let inside = possible.filter { $0 > field.startIndex }
    return inside.min { speedChange(to: field[$0...]) < speedChange(to: field[$1...]) }
  }

  /// Whether the first digits of a speed may be those of a message that was cut off before it, or the other way around: the speed changes
  /// much, but less without them, or with digits before it. A next message with a similar speed confirms it, unless that directly follows
  /// this one: then the same part may have been cut off both.
  private mutating func isDoubtful(_ speed: Int, in field: ArraySlice<UInt8>) -> Bool {
    guard let lastSpeed, abs(speed - lastSpeed) > Self.likelyChange else { return false }
    if digitsBefore.isEmpty, let doubtedSpeed, abs(speed - doubtedSpeed) <= Self.likelyChange { return false }
    let digits = digitsBefore + field
    let others = digits.indices.filter { $0 != digitsBefore.count }.compactMap { Self.number(digits[$0...]) }
    guard others.contains(where: { abs($0 - lastSpeed) < abs(speed - lastSpeed) }) else { return false }
    doubtedSpeed = speed
    return true
  }

  /// How far a speed is from the last one, in mph; the maximum if it has a leading zero, which the board does not print.
  private func speedChange(to digits: ArraySlice<UInt8>) -> Int {
    let hasLeadingZero = digits.count > 1 && digits.first == zero
    return hasLeadingZero ? .max : abs((Self.number(digits) ?? .max / 2) - (lastSpeed ?? 0))
  }

  /// Parses one to five digits, with an optional minus sign.
  private static func number(_ text: ArraySlice<UInt8>) -> Int? {
    let digits = text.first == minus ? text.dropFirst() : text
    guard (1...5).contains(digits.count), digits.allSatisfy(isDigit) else { return nil }
    let value = digits.reduce(0) { $0 * 10 + Int($1 - zero) }
    return text.first == minus ? -value : value
  }

  /// Parses one to six digits, a decimal point and two digits, with an optional minus sign, as hundredths. The board counts hundredths in
  /// 16 bits.
  private static func hundredths(_ text: ArraySlice<UInt8>) -> Int? {
    let digits = text.first == minus ? text.dropFirst() : text
    guard (4...9).contains(digits.count), digits[digits.endIndex - 3] == dot else { return nil }
    let all = digits.filter { $0 != dot }
    guard all.count == digits.count - 1, all.allSatisfy(isDigit) else { return nil }
    let value = all.reduce(0) { $0 * 10 + Int($1 - zero) }
    let signed = text.first == minus ? -value : value
    return Int(Int16.min)...Int(Int16.max) ~= signed ? signed : nil
  }

  /// Splits additional fields: `$7$ok` becomes 7 and ok.
  private static func fields(_ bytes: ArraySlice<UInt8>) -> [String] {
    bytes.split(separator: dollar, omittingEmptySubsequences: false).dropFirst().map { String(decoding: $0, as: UTF8.self) }
  }
}

private let dollar = UInt8(ascii: "$")
private let minus = UInt8(ascii: "-")
private let zero = UInt8(ascii: "0")

// The request of a custom signal, and the prefix of its response. The request must fit into one frame. The position of the data in the
// response must be known. Unless allow-raw is set, the request must be a read request.

struct SignalRequest: Hashable, Sendable {
  let bytes: [UInt8]
  /// The prefix of a positive response; byte A of formulas is the first byte after it.
  let responsePrefix: [UInt8]

  var service: UInt8 { bytes[0] }
  var text: String { String(decoding: spacedHex(bytes).utf8.filter { $0 != space }, as: UTF8.self) }

  static let maxLength = 7

  /// Parses hex digits, as in 220101; blanks between them and a 0x prefix are accepted.
  init(_ text: String, allowRaw: Bool) throws(ValueError) {
    var digits = text.utf8.filter { $0 != space }
    if digits.starts(with: "0x".utf8) || digits.starts(with: "0X".utf8) { digits.removeFirst(2) }
    guard digits.count >= 2, digits.count % 2 == 0, digits.allSatisfy(isHexDigit) else {
      throw ValueError("not a request; write two hex digits per byte, as in 220101")
    }
    guard digits.count <= 2 * Self.maxLength else { throw ValueError("a request has at most \(Self.maxLength) bytes; shorten it") }
    bytes = stride(from: 0, to: digits.count, by: 2).map { hexValue(digits[$0]) << 4 | hexValue(digits[$0 + 1]) }
    let service = bytes[0]
    guard service != 0x04, service != 0x14 else {
      throw ValueError(
        "service \(spacedHex([service])) clears the trouble codes, and a signal is polled repeatedly; use vehiclectl dtc clear")
    }
    guard service != 0x11 else {
      throw ValueError("service 11 resets the ECU, and a signal is polled repeatedly; use another service")
    }
    guard allowRaw || OBDQuery.readServices.contains(service) else {
      throw ValueError(
        "service \(spacedHex([service])) is not a read request; use one of 01 to 0A (not 04, 05, 08), 19, 1A, 21 and 22, or set allow-raw = true for every device with this signal"
      )
    }
    guard let form = Self.form(of: service) else {
      guard service < 0xBF else { throw ValueError("\(spacedHex([service])) is not a service; write one, as in 220101") }
      responsePrefix = [service + 0x40]
      return
    }
    guard form.counts.contains(bytes.count) else { throw ValueError("service \(spacedHex([service])) takes \(form.description)") }
    responsePrefix = [service + 0x40] + bytes[1..<1 + form.echoed]
  }

  /// Parses a request of a built-in table; traps if it is invalid.
  static func builtIn(_ text: String) -> SignalRequest {
    do throws(ValueError) { return try SignalRequest(text, allowRaw: false) } catch { preconditionFailure("\(text): \(error)") }
  }

  private static func form(of service: UInt8) -> (counts: ClosedRange<Int>, echoed: Int, description: String)? {
    switch service {
    case 0x01: (2...2, 1, "one PID; write it as in 010C")
    case 0x02: (3...3, 2, "a PID and a frame number; write it as in 020C00")
    case 0x03, 0x07, 0x0A: (1...1, 0, "no parameters; remove the rest")
    case 0x06: (2...2, 1, "one monitor identifier; write it as in 0601")
    case 0x09: (2...2, 1, "one information type; write it as in 0904")
    case 0x19: (2...7, 1, "a report type; write it as in 190209")
    case 0x1A: (2...2, 1, "one identifier; write it as in 1A90")
    case 0x21: (2...7, 1, "an identifier; write it as in 2101")
    case 0x22: (3...3, 2, "one two-byte identifier; write it as in 220101")
    default: nil
    }
  }
}

// Vehicle information of service 09 and UDS 22 F190: VIN, calibration identifiers and verification numbers, ECU names (SAE J1979, ISO 3779
// for the VIN). CAN sends one message with a count; older protocols send numbered lines of four bytes, all of which must be present in
// order. The VIN is personal data.

enum VehicleInformation {
  /// The result of parsing a response.
  enum Answer: Equatable {
    case texts([String])
    case malformed(String)
  }

  static let vinRequest: [UInt8] = [0x09, 0x02]
  /// The VIN request for vehicles with UDS only.
  static let vinRequestUDS: [UInt8] = [0x22, 0xF1, 0x90]
  static let calibrationRequest: [UInt8] = [0x09, 0x04]
  static let verificationRequest: [UInt8] = [0x09, 0x06]
  static let nameRequest: [UInt8] = [0x09, 0x0A]

  /// Parses the messages with which one ECU responds to a request of service 09 or to 22 F190.
  static func read(_ messages: [ArraySlice<UInt8>]) -> Answer {
    guard let first = messages.first else { return .malformed("no response") }
    if first.starts(with: [0x62, 0xF1, 0x90]) {
      return messages.count == 1 ? vin(Array(first.dropFirst(3))) : .malformed("several responses from one ECU")
    }
    guard first.count >= 3, first.first == 0x49 else { return .malformed("not a service 09 response") }
    let type = first[first.startIndex + 1]
    let isNumbered = first.count == 7 && first[first.startIndex + 2] == 1 && type != 0x0A
    let data: [UInt8]
    var count: Int?
    if isNumbered {
      guard let joined = join(messages, type) else { return .malformed("lines missing or out of order") }
      data = joined
    } else {
      guard messages.count == 1 else { return .malformed("several responses from one ECU") }
      data = Array(first.dropFirst(3))
      count = Int(first[first.startIndex + 2])
    }
    switch type {
    case 0x02: return count ?? 1 == 1 ? vin(data) : .malformed("more than one VIN")
    case 0x04: return items(data, of: 16, count, text)
    case 0x06: return items(data, of: 4, count) { spacedHex($0).filter { $0 != " " } }
    case 0x0A: return items(data, of: 20, count, text)
    default: return .malformed("unknown information type")
    }
  }

  /// Joins the numbered lines of older protocols: `49 TT NN` and four bytes, where NN counts from 1.
  private static func join(_ lines: [ArraySlice<UInt8>], _ type: UInt8) -> [UInt8]? {
    var data: [UInt8] = []
    for (index, line) in lines.enumerated() {
      guard line.count == 7, line.starts(with: [0x49, type]), Int(line[line.startIndex + 2]) == index + 1 else { return nil }
      data += line.dropFirst(3)
    }
    return data
  }

  /// Parses a VIN: seventeen letters and digits except I, O and Q, with optional padding around them.
  static func vin(_ bytes: [UInt8]) -> Answer {
    let text = trimmed(bytes)
    guard text.count == 17 else { return .malformed("a VIN has 17 characters, not \(text.count)") }
    guard text.allSatisfy({ isDigit($0) || (0x41...0x5A).contains($0) && !"IOQ".utf8.contains($0) }) else {
      return .malformed("a VIN has digits and capital letters without I, O and Q")
    }
    return .texts([String(decoding: text, as: UTF8.self)])
  }

  private static func items(_ data: [UInt8], of size: Int, _ count: Int?, _ read: (ArraySlice<UInt8>) -> String?) -> Answer {
    guard !data.isEmpty, data.count % size == 0, count == nil || count == data.count / size else {
      return .malformed("the response length does not match its item count")
    }
    var found: [String] = []
    for start in stride(from: 0, to: data.count, by: size) {
      guard let item = read(data[start..<start + size]) else { return .malformed("the response contains no plain text") }
      found.append(item)
    }
    return .texts(found)
  }

  /// Parses ASCII text with optional padding around it, and between the short and the long name of an ECU.
  private static func text(_ bytes: ArraySlice<UInt8>) -> String? {
    let text = trimmed(Array(bytes)).filter { $0 != 0 }
    guard text.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else { return nil }
    return String(decoding: text, as: UTF8.self)
  }

  private static func trimmed(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
    let isPadding = { (byte: UInt8) in byte == 0 || byte == 0xFF || byte == space }
    let text = bytes.drop(while: isPadding)
    return text.lastIndex { !isPadding($0) }.map { text[...$0] } ?? []
  }
}

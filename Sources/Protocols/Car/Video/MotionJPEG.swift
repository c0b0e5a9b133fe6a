// Reads the response of a camera's small HTTP server: a stream of JPEG pictures, or a single one. Used by CarMachine and by
// vehiclectl. At most one header and one picture are buffered, and only data that starts as a JPEG is returned.
// Source: AutoTT, Cameras.py (parts without a length, and no closing boundary), RFC 2046 §5.1.1, ITU-T T.81 annex B.

/// Parses one HTTP response, beginning with its status line. Performs no I/O.
public struct MotionJPEG: Sendable {
  public enum Event: Sendable, Equatable {
    /// A complete picture.
    case frame([UInt8])
    /// The response is not a stream of pictures, or is damaged; the text is the cause. No further event follows.
    case failed(String)
  }

  /// The maximum length of the header of the response or of a part, in bytes.
  public static let headLimit = 16 * 1024
  /// The maximum length of a picture, and of the data between two pictures, in bytes.
  public static let frameLimit = 4 << 20

  /// The part of the response that is being read.
  private enum Phase { case responseHead, preamble, partHead, picture, betweenParts, ended }

  private var phase = Phase.responseHead
  private var head = Head()
  /// The delimiters between parts, as complete lines; empty for a single picture.
  private var delimiters: [[UInt8]] = []
  /// The current line: complete in a header, otherwise limited to the length of a delimiter.
  private var line: [UInt8] = []
  /// The number of bytes since the start of the header or of skipped data.
  private var count = 0
  private var frame: [UInt8] = []
  /// The start of the current line within the picture.
  private var lineStart = 0
  private var scan = Scan()

  /// Creates a parser at the start of a response.
  public init() {}

  /// The request for the stream: GET in HTTP/1.0, to prevent chunked encoding. `host` is the authority of the URL, with its port;
  /// characters that are invalid in a request line are percent-encoded.
  public static func request(host: String, path: String) -> [UInt8] {
    let digits = Array("0123456789ABCDEF".utf8)
    let target = path.utf8.flatMap { byte in
      (0x21..<0x7F).contains(byte) ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
    let name = host.utf8.filter { (0x21..<0x7F).contains($0) }
    return Array("GET ".utf8) + (target.first == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]) + target + Array(" HTTP/1.0\r\nHost: ".utf8)
      + name
      + Array("\r\nAccept: multipart/x-mixed-replace, image/jpeg\r\nConnection: close\r\n\r\n".utf8)
  }

  /// Reads received bytes, in pieces of any size; returns the completed pictures, and the failure, if any.
  public mutating func read(_ bytes: [UInt8]) -> [Event] {
    var events: [Event] = []
    var rest = bytes[...]
    while !rest.isEmpty, phase != .ended {
      if phase == .picture, let length = head.length {
        let piece = rest.prefix(length - frame.count)
        frame += piece
        rest = rest.dropFirst(piece.count)
        if frame.count == length, let event = complete(frame.starts(with: [0xFF, 0xD8])) { events.append(event) }
      } else if let byte = rest.popFirst(), let event = read(byte) {
        events.append(event)
      }
    }
    return events
  }

  private mutating func read(_ byte: UInt8) -> Event? {
    switch phase {
    case .responseHead, .partHead:
      count += 1
      if count > Self.headLimit { return fail("not a camera: HTTP header is longer than \(Self.headLimit) bytes") }
      guard byte == lineFeed else {
        line.append(byte)
        return nil
      }
      if line.last == carriageReturn { line.removeLast() }
      defer { line.removeAll(keepingCapacity: true) }
      guard line.isEmpty else {
        head.read(line)
        return nil
      }
      return phase == .responseHead ? begin() : beginPart()
    case .preamble, .betweenParts:
      count += 1
      if count > Self.frameLimit { return fail("no picture within \(Self.frameLimit) bytes") }
      if let isLast = delimiter(byte) { part(isLast) }
      return nil
    case .picture: return picture(byte)
    case .ended: return nil
    }
  }

  /// Checks the complete header of the response.
  private mutating func begin() -> Event? {
    guard let status = head.status else { return fail("not an HTTP response; check the address of the stream") }
    guard status.hasPrefix("200") else { return fail("the camera returned \"\(status)\"; check that the video is on, and the address") }
    guard !head.isChunked else { return fail("the camera uses chunked encoding, which is not supported") }
    let type = head.type ?? ""
    switch Head.essence(type) {
    case "image/jpeg": return beginPart()
    case "multipart/x-mixed-replace":
      guard let boundary = Head.boundary(type) else { return fail("no boundary in the camera's Content-Type") }
      // Some servers include the two dashes of a delimiter in the boundary parameter, and do not add them to the delimiters.
      delimiters = [Array("--".utf8) + boundary] + (boundary.starts(with: Array("--".utf8)) ? [boundary] : [])
      enter(.preamble)
    case let other:
      return fail(
        "the camera sends \(other.isEmpty ? "data of no type" : printable(other.utf8, limit: 60)) instead of pictures; give the address of the stream itself"
      )
    }
    return nil
  }

  private mutating func beginPart() -> Event? {
    if let length = head.length, length > Self.frameLimit { return fail(Self.tooLong) }
    let isPicture = head.type.map { Head.essence($0) == "image/jpeg" } ?? true
    scan = Scan()
    frame.removeAll(keepingCapacity: true)
    enter(isPicture && head.length != 0 ? .picture : .betweenParts)
    return nil
  }

  /// Handles a byte of a picture of unknown length, which ends with its EOI marker, or at the next part.
  private mutating func picture(_ byte: UInt8) -> Event? {
    if frame.isEmpty, isLineEnd(byte) { return nil }  // a surplus empty line
    frame.append(byte)
    scan.read(byte)
    if scan.phase == .ended { return complete(true) }
    if frame.count > Self.frameLimit { return fail(Self.tooLong) }
    if delimiters.isEmpty, scan.phase == .invalid { return fail(Self.noPicture) }
    guard let isLast = delimiter(byte) else {
      if byte == lineFeed { lineStart = frame.count }
      return nil
    }
    frame.removeSubrange(lineStart...)
    while let last = frame.last, isLineEnd(last) { frame.removeLast() }
    let event = complete(scan.hasData)
    part(isLast)
    return event
  }

  private static let noPicture = "not a JPEG picture; give the address of the stream itself"
  private static let tooLong = "picture is larger than \(frameLimit) bytes; choose a lower quality"

  private mutating func complete(_ isWhole: Bool) -> Event? {
    guard isWhole || !delimiters.isEmpty else { return fail(Self.noPicture) }
    let event: Event? = isWhole ? .frame(frame) : nil  // other parts are skipped
    frame = []
    enter(delimiters.isEmpty ? .ended : .betweenParts)
    return event
  }

  private mutating func part(_ isLast: Bool) {
    head = Head()
    enter(isLast ? .ended : .partHead)
  }

  private mutating func enter(_ next: Phase) {
    phase = next
    line.removeAll(keepingCapacity: true)
    lineStart = 0
    count = 0
  }

  private mutating func fail(_ message: String) -> Event {
    self = MotionJPEG()
    phase = .ended
    return .failed(message)
  }

  /// If this byte ends a delimiter line, returns whether it is the last delimiter; otherwise returns nil.
  private mutating func delimiter(_ byte: UInt8) -> Bool? {
    guard byte == lineFeed else {
      if line.count < Head.maxBoundaryLength + 8 { line.append(byte) }
      return nil
    }
    defer { line.removeAll(keepingCapacity: true) }
    while let last = line.last, isBlank(last) { line.removeLast() }
    for delimiter in delimiters where line.starts(with: delimiter) {
      if line.count == delimiter.count { return false }
      if line[delimiter.count...].elementsEqual("--".utf8) { return true }
    }
    return nil
  }
}

// Reads the answer of a camera's small HTTP server: JPEG pictures one after another, or a single one. The car's machine and
// vehiclectl both read with it. Owns the bytes of the picture that is coming; must never hold more than a head and one picture, nor
// give out what does not begin as a JPEG.
// Facts: autott.md §6 (parts without a length and without a last boundary), RFC 2046 §5.1.1, ITU-T T.81 annex B.

/// One answer, from its status line on. It asks for nothing and waits for nothing: bytes in, pictures out.
public struct MotionJPEG: Sendable {
  public enum Event: Sendable, Equatable {
    /// A picture, from its first byte to its last.
    case frame([UInt8])
    /// This is no stream of pictures, or none that can be read further: why, in a person's words. Nothing follows.
    case failed(String)
  }

  /// The longest head of the answer or of a part, in bytes.
  public static let headLimit = 16 * 1024
  /// The longest picture, in bytes; as much may stand between two of them.
  public static let frameLimit = 4 << 20

  private enum Place { case answer, preamble, partHead, picture, between, over }

  private var place = Place.answer
  private var head = Head()
  /// What parts the pictures, as whole lines; none where there is a single picture.
  private var delimiters: [[UInt8]] = []
  /// The line at hand, as far as it may matter: the whole of it in a head, the length of a delimiter elsewhere.
  private var line: [UInt8] = []
  /// Bytes since this head, or what is skipped, began.
  private var count = 0
  private var frame: [UInt8] = []
  /// Where the line at hand begins in the picture.
  private var lineStart = 0
  private var scan = Scan()

  /// At the beginning of the answer.
  public init() {}

  /// What asks for the stream: GET in HTTP/1.0, for then nothing is sent in chunks. `host` is what stands before the path of the
  /// URL, with its port where it has one; what cannot stand in a request line is percent-encoded.
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

  /// Takes bytes as they came, cut anywhere, and gives what they completed.
  public mutating func take(_ bytes: [UInt8]) -> [Event] {
    var events: [Event] = []
    var rest = bytes[...]
    while !rest.isEmpty, place != .over {
      if place == .picture, let length = head.length {
        let piece = rest.prefix(length - frame.count)
        frame += piece
        rest = rest.dropFirst(piece.count)
        if frame.count == length, let event = complete(frame.starts(with: [0xFF, 0xD8])) { events.append(event) }
      } else if let byte = rest.popFirst(), let event = take(byte) {
        events.append(event)
      }
    }
    return events
  }

  private mutating func take(_ byte: UInt8) -> Event? {
    switch place {
    case .answer, .partHead:
      count += 1
      if count > Self.headLimit { return fail("the answer's head does not end within \(Self.headLimit) bytes; this is no camera") }
      guard byte == lineFeed else {
        line.append(byte)
        return nil
      }
      if line.last == carriageReturn { line.removeLast() }
      defer { line.removeAll(keepingCapacity: true) }
      guard line.isEmpty else {
        head.take(line)
        return nil
      }
      return place == .answer ? begin() : beginPart()
    case .preamble, .between:
      count += 1
      if count > Self.frameLimit { return fail("no picture begins within \(Self.frameLimit) bytes") }
      if let isLast = delimiter(byte) { part(isLast) }
      return nil
    case .picture: return picture(byte)
    case .over: return nil
    }
  }

  /// The head of the answer has been read.
  private mutating func begin() -> Event? {
    guard let status = head.status else { return fail("what answers does not speak HTTP; check the address of the stream") }
    guard status.hasPrefix("200") else { return fail("the camera answers \"\(status)\"; see that the video is on and the address right") }
    guard !head.isChunked else { return fail("the camera answers in chunks, which nobody asked for; only plain streams can be read") }
    let type = head.type ?? ""
    switch Head.essence(type) {
    case "image/jpeg": return beginPart()
    case "multipart/x-mixed-replace":
      guard let boundary = Head.boundary(type) else { return fail("the camera does not say what parts its pictures (boundary)") }
      // Some servers put the two dashes into the name and then not before it.
      delimiters = [Array("--".utf8) + boundary] + (boundary.starts(with: Array("--".utf8)) ? [boundary] : [])
      go(to: .preamble)
    case let other:
      return fail(
        "the camera sends \(other.isEmpty ? "something without a type" : printable(other.utf8, limit: 60)), no pictures; give the address of the stream itself"
      )
    }
    return nil
  }

  private mutating func beginPart() -> Event? {
    if let length = head.length, length > Self.frameLimit { return fail(Self.tooLong) }
    let isPicture = head.type.map { Head.essence($0) == "image/jpeg" } ?? true
    scan = Scan()
    frame.removeAll(keepingCapacity: true)
    go(to: isPicture && head.length != 0 ? .picture : .between)
    return nil
  }

  /// A byte of a picture whose length nobody told: it ends with its own last marker, or where the next part begins.
  private mutating func picture(_ byte: UInt8) -> Event? {
    if frame.isEmpty, isLineEnd(byte) { return nil }  // an empty line too many
    frame.append(byte)
    scan.take(byte)
    if scan.place == .ended { return complete(true) }
    if frame.count > Self.frameLimit { return fail(Self.tooLong) }
    if delimiters.isEmpty, scan.place == .astray { return fail(Self.noPicture) }
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

  private static let noPicture = "what came is no JPEG picture; give the address of the stream itself"
  private static let tooLong = "a picture of more than \(frameLimit) bytes; choose a lower quality"

  private mutating func complete(_ isWhole: Bool) -> Event? {
    guard isWhole || !delimiters.isEmpty else { return fail(Self.noPicture) }
    let event: Event? = isWhole ? .frame(frame) : nil  // a part that is none is passed over: the next may be one
    frame = []
    go(to: delimiters.isEmpty ? .over : .between)
    return event
  }

  private mutating func part(_ isLast: Bool) {
    head = Head()
    go(to: isLast ? .over : .partHead)
  }

  private mutating func go(to next: Place) {
    place = next
    line.removeAll(keepingCapacity: true)
    lineStart = 0
    count = 0
  }

  private mutating func fail(_ words: String) -> Event {
    self = MotionJPEG()
    place = .over
    return .failed(words)
  }

  /// Whether this byte ends a line that parts pictures, and whether that is the last one.
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

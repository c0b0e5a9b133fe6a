// The file of an import: reads it in chunks, and returns lines or CSV records.

import Glibc

final class ImportFile {
  let path: String
  private let descriptor: Int32
  private let size: Int
  private var position = 0
  private var buffer: [UInt8] = []
  /// The start of the next line in the buffer.
  private var next = 0
  private var hasEnded = false
  /// The FNV-1a hash of the bytes read so far. Source: draft-eastlake-fnv.
  private var hash: UInt64 = 0xCBF2_9CE4_8422_2325
  /// The number of the last line or record read, from 1.
  private(set) var line = 0
  /// The maximum length of a line in bytes; the lines of an export are shorter.
  private static let maxLine = 4 << 20

  init(_ path: String) throws(Failure) {
    self.path = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .other("cannot read \(path): \(String(cString: strerror(errno)))") }
    var state = stat()
    guard fstat(descriptor, &state) == 0, state.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw .usage("cannot import \(path): not a regular file; write the values to a file first")
    }
    size = Int(state.st_size)
  }

  deinit { close(descriptor) }

  /// The fraction read so far, 0 to 1.
  var progress: Double { size > 0 ? min(1, Double(position) / Double(size)) : 1 }

  /// Identifies the contents read so far: the name of the file and a hash.
  var source: String {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    return "\(String(decoding: name.utf8.suffix(100), as: UTF8.self)) \(String(hash, radix: 16))"
  }

  /// Returns the next line without its line ending; nil at the end of the file.
  func nextLine() throws(Failure) -> [UInt8]? {
    try take(allowingQuotedLineEndings: false)
  }

  /// Returns the cells of the next CSV record; nil at the end of the file. A quoted cell can contain line endings.
  func nextRecord() throws(Failure) -> [String]? {
    guard let bytes = try take(allowingQuotedLineEndings: true) else { return nil }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw failure("the line is not UTF-8") }
    var cells: [String] = []
    var cell = String.UnicodeScalarView()
    var (isQuoted, wasQuote) = (false, false)
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"":
        if !isQuoted, wasQuote { cell.append("\"") }  // a doubled quote
        wasQuote = isQuoted
        isQuoted.toggle()
      case "," where !isQuoted:
        cells.append(String(cell))
        (cell, wasQuote) = (String.UnicodeScalarView(), false)
      default:
        wasQuote = false
        cell.append(scalar)
      }
    }
    return cells + [String(cell)]
  }

  /// An error in the last line that was read.
  func failure(_ message: String) -> Failure { .other("\(path):\(line): \(message); nothing was imported") }

  private func take(allowingQuotedLineEndings: Bool) throws(Failure) -> [UInt8]? {
    var (isQuoted, scanned) = (false, next)
    while true {
      while scanned < buffer.count {
        let byte = buffer[scanned]
        if allowingQuotedLineEndings, byte == UInt8(ascii: "\"") { isQuoted.toggle() }
        scanned += 1
        if byte == UInt8(ascii: "\n"), !isQuoted {
          line += 1
          return takeLine(to: scanned, hasLineEnding: true)
        }
      }
      if hasEnded {
        line += 1
        if isQuoted { throw failure("a quoted cell is not closed") }
        return scanned > next ? takeLine(to: scanned, hasLineEnding: false) : nil
      }
      guard scanned - next < Self.maxLine else {
        line += 1
        throw failure("the line is longer than 4 MiB; import a file written by \"history export\"")
      }
      scanned -= next
      try fill()
    }
  }

  /// Takes the line that ends at a position in the buffer. Returns it without CR and LF.
  private func takeLine(to end: Int, hasLineEnding: Bool) -> [UInt8] {
    var bytes = buffer[next..<(hasLineEnding ? end - 1 : end)]
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    next = end
    return Array(bytes)
  }

  private func fill() throws(Failure) {
    buffer.removeFirst(next)
    next = 0
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    let count = read(descriptor, &chunk, chunk.count)
    guard count >= 0 else { throw .other("cannot read \(path): \(String(cString: strerror(errno)))") }
    hasEnded = count == 0
    position += count
    for byte in chunk[..<count] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    buffer += chunk[..<count]
  }
}

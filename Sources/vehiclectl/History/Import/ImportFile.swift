// A file that is imported, read in parts: lines, records of CSV, and how much of it was read.

import Glibc

final class ImportFile {
  let path: String
  private let descriptor: Int32
  private let size: Int
  private var position = 0
  private var buffer: [UInt8] = []
  private var next = 0
  private var hasEnded = false
  /// FNV-1a of what was read. Source: draft-eastlake-fnv.
  private var hash: UInt64 = 0xCBF2_9CE4_8422_2325
  /// The number of the line that was read last, from 1.
  private(set) var line = 0
  /// A longer line is not one of an export.
  private static let maxLine = 4 << 20

  init(_ path: String) throws(Failure) {
    self.path = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .other("cannot read \(path): \(String(cString: strerror(errno)))") }
    var state = stat()
    guard fstat(descriptor, &state) == 0, state.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw .usage("cannot import \(path): it is not a regular file; write the values to a file first")
    }
    size = Int(state.st_size)
  }

  deinit { close(descriptor) }

  /// The fraction that was read, 0 to 1.
  var progress: Double { size > 0 ? min(1, Double(position) / Double(size)) : 1 }

  /// Identifies the contents that were read: the name of the file and a hash.
  var source: String {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    return "\(String(decoding: name.utf8.suffix(100), as: UTF8.self)) \(String(hash, radix: 16))"
  }

  /// The next line without its end; nil at the end of the file.
  func nextLine() throws(Failure) -> [UInt8]? {
    guard let bytes = try take(untilQuoted: false) else { return nil }
    return bytes
  }

  /// The cells of the next CSV record; nil at the end of the file. A quoted cell can contain line ends.
  func nextRecord() throws(Failure) -> [String]? {
    guard let bytes = try take(untilQuoted: true) else { return nil }
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

  /// An error in the line that was read last.
  func failure(_ message: String) -> Failure { .other("\(path):\(line): \(message); nothing was imported") }

  private func take(untilQuoted: Bool) throws(Failure) -> [UInt8]? {
    var (isQuoted, scanned) = (false, next)
    while true {
      while scanned < buffer.count {
        let byte = buffer[scanned]
        if untilQuoted, byte == UInt8(ascii: "\"") { isQuoted.toggle() }
        scanned += 1
        if byte == UInt8(ascii: "\n"), !isQuoted {
          line += 1
          return finish(scanned, isEnded: true)
        }
      }
      if hasEnded {
        line += 1
        if isQuoted { throw failure("a quoted cell is not closed") }
        return scanned > next ? finish(scanned, isEnded: false) : nil
      }
      guard scanned - next < Self.maxLine else {
        line += 1
        throw failure("the line is longer than 4 MiB; import a file of \"history export\"")
      }
      scanned -= next
      try fill()
    }
  }

  /// The line up to a position in the buffer, without CR and LF.
  private func finish(_ end: Int, isEnded: Bool) -> [UInt8] {
    var bytes = buffer[next..<(isEnded ? end - 1 : end)]
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

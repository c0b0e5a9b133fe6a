// The output of an export: stdout, or a file that appears under its name only when it is complete. Writes are buffered.

import Glibc

final class ExportFile {
  private let path: String?
  private let force: Bool
  /// The path that is written until the file is complete; nil if the output is written in place.
  private let temporary: String?
  private var descriptor: Int32
  private var buffer: [UInt8] = []
  /// The number of bytes written so far.
  private(set) var size = 0
  private static let bufferSize = 1 << 16

  /// Opens the file with this path, or stdout if it is nil.
  init(_ path: String?, force: Bool) throws(Failure) {
    (self.path, self.force) = (path, force)
    guard let path else {
      (descriptor, temporary) = (STDOUT_FILENO, nil)
      return
    }
    try AtomicFile.check(path, force: force)
    let isSpecial = AtomicFile.isSpecial(path)
    temporary = isSpecial ? nil : "\(path).\(getpid()).part"
    descriptor = isSpecial ? open(path, O_WRONLY | O_CLOEXEC) : try RecordCommand.create(temporary ?? path, force: false)
    guard descriptor >= 0 else { throw .other("cannot write \(path): \(String(cString: strerror(errno)))") }
  }

  deinit {
    guard path != nil, descriptor >= 0 else { return }
    close(descriptor)
    if let temporary { unlink(temporary) }
  }

  func write(_ text: String) throws(Failure) {
    buffer += text.utf8
    size += text.utf8.count
    if buffer.count >= Self.bufferSize { try flush() }
  }

  private func flush() throws(Failure) {
    defer { buffer.removeAll(keepingCapacity: true) }
    guard let path else { return Output.write(buffer, to: STDOUT_FILENO) }
    guard Output.write(all: buffer[...], to: descriptor) else {
      throw .other("cannot write \(path): \(String(cString: strerror(errno))); free up space, or specify another file")
    }
  }

  /// Writes what is buffered, and gives the file its final name.
  func finish() throws(Failure) {
    try flush()
    guard let path else { return }
    let isWritten = fsync(descriptor) == 0 || errno == EINVAL
    let isClosed = close(descriptor) == 0
    descriptor = -1
    guard isWritten, isClosed else {
      let error = errno
      if let temporary { unlink(temporary) }
      throw .other("cannot write \(path): \(String(cString: strerror(error)))")
    }
    guard let temporary else { return }
    // link(2) does not replace a file that was created in the meantime.
    let isNamed = force ? rename(temporary, path) == 0 : link(temporary, path) == 0
    let error = errno
    if !force { unlink(temporary) }
    guard isNamed else { throw .other("cannot write \(path): \(String(cString: strerror(error)))") }
  }
}

// Writes a file completely or not at all, by renaming a temporary file next to it. Does not overwrite without --force.

import Glibc

enum AtomicFile {
  /// Throws if `write` would reject this path. Call this before you compute the contents.
  static func check(_ path: String, force: Bool) throws(Failure) {
    var state = stat()
    if stat(path, &state) == 0, state.st_mode & S_IFMT == S_IFDIR {
      throw .usage("cannot write \(path): it is a directory; specify a file")
    }
    if !force, lstat(path, &state) == 0 {
      throw .usage("cannot write \(path): it exists; specify another file, or use --force to overwrite it")
    }
  }

  /// Whether the path is that of a pipe or a device, such as /dev/null, which rename would replace.
  static func isSpecial(_ path: String) -> Bool {
    var state = stat()
    return stat(path, &state) == 0 && state.st_mode & S_IFMT != S_IFREG
  }

  /// Writes the file. Its permissions are `mode`, regardless of the umask, or 0644 less the umask if `mode` is nil.
  static func write(_ bytes: [UInt8], to path: String, force: Bool, mode: mode_t? = nil) throws(Failure) {
    if force, isSpecial(path) { return try writeContents(path, O_WRONLY | O_CLOEXEC, bytes, for: path) }
    let temporary = "\(path).\(getpid()).part"
    do throws(Failure) {
      try writeContents(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, bytes, for: path, mode: mode)
      if !force { close(try RecordCommand.create(path, force: false)) }  // reserves the name
      guard rename(temporary, path) == 0 else {
        let error = errno
        if !force { unlink(path) }
        throw .other("cannot write \(path): \(String(cString: strerror(error)))")
      }
    } catch {
      unlink(temporary)
      throw error
    }
  }

  /// Opens and writes one file. Error messages name `displayPath`, the path that the user specified.
  private static func writeContents(_ path: String, _ flags: Int32, _ bytes: [UInt8], for displayPath: String, mode: mode_t? = nil)
    throws(Failure)
  {
    let descriptor = open(path, flags, (mode ?? 0o644) & 0o600 | (mode == nil ? 0o044 : 0))
    guard descriptor >= 0 else { throw .other("cannot write \(displayPath): \(String(cString: strerror(errno)))") }
    // Sets an explicit mode regardless of the umask. Until then, only the owner has access.
    if let mode { fchmod(descriptor, mode) }
    let isWritten = Output.write(all: bytes[...], to: descriptor)
    let error = errno
    guard close(descriptor) == 0 && isWritten else {
      throw .other("cannot write \(displayPath): \(String(cString: strerror(isWritten ? errno : error)))")
    }
  }
}

// A file that is there whole or not at all: written beside its place, then renamed. Must never overwrite what it was not told to.

import Glibc

enum AtomicFile {
  /// Whether a file may be made there; says so before anything else is done for it.
  static func check(_ path: String, force: Bool) throws(Failure) {
    var state = stat()
    if stat(path, &state) == 0, state.st_mode & S_IFMT == S_IFDIR { throw .usage("\(path) is a directory; name a file") }
    if !force, lstat(path, &state) == 0 {
      throw .usage("\(path) is there already; name another file, or overwrite it with --force")
    }
  }

  /// `mode`: what it is allowed to whom, whatever the umask.
  static func write(_ bytes: [UInt8], to path: String, force: Bool, mode: mode_t? = nil) throws(Failure) {
    var state = stat()
    if force, stat(path, &state) == 0, state.st_mode & S_IFMT != S_IFREG {
      return try fill(path, O_WRONLY | O_CLOEXEC, bytes, for: path)  // a pipe, or /dev/null: renamed over it would be gone
    }
    let beside = "\(path).\(getpid()).part"
    do throws(Failure) {
      try fill(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, bytes, for: path, mode: mode)
      if !force { close(try RecordCommand.create(path, force: false)) }  // the place is ours, whoever else wants it
      guard rename(beside, path) == 0 else {
        let error = errno
        if !force { unlink(path) }
        throw .other("cannot write \(path): \(String(cString: strerror(error)))")
      }
    } catch {
      unlink(beside)
      throw error
    }
  }

  /// What goes wrong names the file that the person gave: of the one beside it nobody knows.
  private static func fill(_ path: String, _ flags: Int32, _ bytes: [UInt8], for given: String, mode: mode_t? = nil) throws(Failure) {
    let descriptor = open(path, flags, (mode ?? 0o644) & 0o600 | (mode == nil ? 0o044 : 0))
    guard descriptor >= 0 else { throw .other("cannot write \(given): \(String(cString: strerror(errno)))") }
    // The umask counts for none that was asked for; nobody may look before.
    if let mode { fchmod(descriptor, mode) }
    let isWritten = Output.write(all: bytes[...], to: descriptor)
    let error = errno
    guard close(descriptor) == 0 && isWritten else {
      throw .other("cannot write \(given): \(String(cString: strerror(isWritten ? errno : error)))")
    }
  }
}

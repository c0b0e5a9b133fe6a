// The lock of the directory of a store, which only one process may write to.

import Glibc

/// A locked directory. The lock ends with the object, or with the process.
public final class StoreLock {
  private let descriptor: CInt

  /// Creates the directory if it does not exist, and locks it for a program, which the error for a locked one names.
  public init(_ directory: String, program: String) throws(StoreError) {
    if mkdir(directory, 0o700) < 0, errno != EEXIST { throw Self.failure("create", directory) }
    let path = directory + "/lock"
    descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure("write", path) }
    if flock(descriptor, LOCK_EX | LOCK_NB) < 0 {
      let code = errno
      guard code == EWOULDBLOCK else { throw StoreError(.failed, "cannot lock \(path): \(String(cString: strerror(code)))") }
      throw StoreError(.inUse, "cannot open \(directory): in use by another \(program); stop it, or choose another directory")
    }
  }

  deinit { close(descriptor) }

  private static func failure(_ action: String, _ path: String) -> StoreError {
    let code = errno
    let remedy =
      switch code {
      case EROFS: "mount the file system writable"
      case ENOSPC: "free some space"
      default: "check the directory and its permissions"
      }
    let kind: StoreError.Kind = code == ENOSPC ? .diskFull : .readOnly
    return StoreError(kind, "cannot \(action) \(path): \(String(cString: strerror(code))); \(remedy)")
  }
}

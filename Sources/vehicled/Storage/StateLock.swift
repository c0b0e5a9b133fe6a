// The lock of the state directory, which only one daemon may use.

import Glibc
import Protocols
import ServiceRuntime

extension Files {
  /// Creates the directory if needed, and locks it until this process ends. Throws only if another process has locked it.
  static func lock(_ directory: String) throws(ValueError) {
    try? makeDirectory(directory)
    let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
      close(descriptor)
      throw ValueError("state directory \(directory) is in use by another vehicled; stop it first, or give another directory with --state")
    }
  }
}

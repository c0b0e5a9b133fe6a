// The lock of the state directory, which only one daemon may use.

import Glibc
import Protocols
import ServiceRuntime

extension Files {
  /// Creates the directory if needed, and locks it until this process ends. Throws only if another process has locked it.
  static func lockState(_ directory: String) throws(ValueError) {
    try? makeDirectory(directory)
    do throws(FileError) {
      if try lock("\(directory)/lock") != nil { return }
    } catch {
      return
    }
    throw ValueError("state directory \(directory) is in use by another vehicled; stop it first, or give another directory with --state")
  }
}

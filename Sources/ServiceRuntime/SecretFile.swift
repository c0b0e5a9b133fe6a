// Files with secrets: systemd credentials, and files that only the service's user can read. Their contents must never appear in messages.

import Glibc
import Protocols

public enum SecretFile {
  private static let maxSize = 1024

  /// Reads the file at a path, or the systemd credential with this name.
  public static func read(
    _ name: String, credentials: String? = getenv("CREDENTIALS_DIRECTORY").map { String(cString: $0) }
  ) throws(ValueError) -> SecretBytes {
    let path = try path(of: name, credentials)
    var status = stat()
    guard stat(path, &status) == 0 else {
      throw ValueError("cannot read \(path): \(errnoMessage(errno)); write the secret into it, with mode 0600")
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw ValueError("\(path) is not a regular file; use the file that contains the secret")
    }
    // systemd protects its credentials by the directory's mode; the files may be readable by root's group.
    let isPrivate = !name.hasPrefix("/") || status.st_mode & 0o077 == 0
    guard isPrivate else { throw ValueError("\(path) is accessible to other users; chmod 600 \(path)") }
    var bytes = try Files.read(path, limit: maxSize)
    while let last = bytes.last, last <= 0x20 { bytes.removeLast() }
    guard !bytes.isEmpty else { throw ValueError("\(path) is empty; write the secret into it") }
    return SecretBytes(bytes)
  }

  private static func path(of name: String, _ credentials: String?) throws(ValueError) -> String {
    if name.hasPrefix("/") { return name }
    guard !name.isEmpty, !name.contains("/"), !name.hasPrefix(".") else {
      throw ValueError("\(quoted(name)) is neither a path nor the name of a credential; write /PATH, or a name of LoadCredential=")
    }
    guard let folder = credentials, !folder.isEmpty else {
      throw ValueError(
        "no systemd credential \(quoted(name)): none are loaded; write /PATH, or LoadCredential=\(name):/PATH in the unit")
    }
    return "\(folder)/\(name)"
  }
}

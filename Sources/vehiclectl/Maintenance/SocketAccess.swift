// Who can connect to a socket, and how this user can get access.

import Glibc

struct SocketAccess {
  /// The group whose members can connect; nil for root's group, which users should not join.
  let group: String?
  let user: String
  /// Whether the user is a member according to the user database, which may be newer than the session.
  let isMember: Bool

  var remedy: String {
    guard let group else { return "start the daemon as a service, whose socket group vehicled can access, or list users in [control]" }
    return isMember
      ? "log out and in again: your session started before you joined the group" : "sudo usermod -aG \(group) \(user), then log in again"
  }
}

extension SocketAccess {
  /// Access to a socket that is open to its group. `serviceGroup`: the group that can use the service, for a socket that is missing or open
  /// to all.
  init(to socket: String, serviceGroup: String) {
    var (state, group) = (stat(), Optional(serviceGroup))
    if stat(socket, &state) == 0, state.st_mode & S_IWOTH == 0 {
      group = state.st_gid == 0 ? nil : getgrgid(state.st_gid).map { String(cString: $0.pointee.gr_name) } ?? "\(state.st_gid)"
    }
    let user = getpwuid(getuid()).map { String(cString: $0.pointee.pw_name) } ?? "USER"
    self.init(group: group, user: user, isMember: group.map { Self.isMember(user, of: $0) } ?? false)
  }

  private static func isMember(_ user: String, of group: String) -> Bool {
    guard let entry = getgrnam(group), var member = entry.pointee.gr_mem else { return false }
    while let name = member.pointee {
      if String(cString: name) == user { return true }
      member += 1
    }
    return false
  }
}

// Who can connect to a socket, and how this user can get access.

import Glibc

struct SocketAccess {
  /// Whether the user is a member of the group.
  enum Membership {
    case none
    /// According to the user database, which is newer than the session.
    case laterThanSession
    case ofSession
  }

  /// The service that listens on the socket.
  let service: Service
  /// The group whose members can connect; nil if no group can, or only root's group, which users should not join.
  let group: String?
  let user: String
  let membership: Membership

  var remedy: String {
    guard let group else {
      let section = service == .daemon ? "[control]" : "[history]"
      return "start \(service.name) as a service, whose socket group \(service.group) can access, or list users in \(section)"
    }
    return switch membership {
    case .none: "sudo usermod -aG \(group) \(user), then log in again"
    case .laterThanSession: "log out and in again: your session started before you joined the group"
    case .ofSession: "group \(group), of which you are a member, can connect: check the modes of its directories with namei -l"
    }
  }
}

extension SocketAccess {
  /// Access to the socket of a service. A socket that is missing or open to all is considered open to the group of the service.
  init(to socket: String, of service: Service) {
    var (state, group) = (stat(), Optional(service.group))
    if stat(socket, &state) == 0, state.st_mode & S_IWOTH == 0 {
      let name = getgrgid(state.st_gid).map { String(cString: $0.pointee.gr_name) } ?? "\(state.st_gid)"
      group = state.st_gid == 0 || state.st_mode & S_IWGRP == 0 ? nil : name
    }
    let user = getpwuid(getuid()).map { String(cString: $0.pointee.pw_name) } ?? "USER"
    self.init(service: service, group: group, user: user, membership: group.map { Self.membership(of: user, in: $0) } ?? .none)
  }

  private static func membership(of user: String, in group: String) -> Membership {
    guard let entry = getgrnam(group) else { return .none }
    var groups = [gid_t](repeating: 0, count: Int(max(0, getgroups(0, nil))))
    if entry.pointee.gr_gid == getegid() || getgroups(CInt(groups.count), &groups) > 0 && groups.contains(entry.pointee.gr_gid) {
      return .ofSession
    }
    guard var member = entry.pointee.gr_mem else { return .none }
    while let name = member.pointee {
      if String(cString: name) == user { return .laterThanSession }
      member += 1
    }
    return .none
  }
}

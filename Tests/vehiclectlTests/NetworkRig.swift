// A private message bus with a mock NetworkManager: one Wi-Fi device, its scan results and activations.
// Source: as in Sources/vehiclectl/Network.

import DBus
import Glibc
import Synchronization
import Testing

@testable import vehiclectl

/// A dbus-daemon for one test.
final class TestBus {
  let address: String
  private let directory: String
  private var pid: pid_t = 0

  init() throws {
    var template = Array("/tmp/vehiclectl-bus-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    directory = String(decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    address = "unix:path=\(directory)/bus"
    var ends: [CInt] = [-1, -1]
    try #require(pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { close(ends[0]) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    let words = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address", "--address=\(address)"]
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for word in arguments { free(word) } }
    var variables: [UnsafeMutablePointer<CChar>?] = [nil]
    let code = posix_spawn(&pid, "/usr/bin/dbus-daemon", &actions, nil, &arguments, &variables)
    close(ends[1])
    try #require(code == 0)
    var byte: UInt8 = 0
    try #require(read(ends[0], &byte, 1) == 1)  // it listens
  }

  deinit {
    kill(pid, SIGKILL)
    var status: Int32 = 0
    waitpid(pid, &status, 0)
    unlink("\(directory)/bus")
    rmdir(directory)
  }
}

/// A mock NetworkManager with the methods that the client uses.
final class MockNetworkManager: Sendable {
  struct Point {
    var ssid: [UInt8]
    var frequency: UInt32 = 2437
    var strength: UInt8 = 50
    var flags: UInt32 = 0
    var rsn: UInt32 = 0

    static func open(_ name: String, strength: UInt8 = 50) -> Point { Point(ssid: Array(name.utf8), strength: strength) }
    static func locked(_ name: String, strength: UInt8 = 50) -> Point {
      Point(ssid: Array(name.utf8), strength: strength, flags: 1, rsn: 0x188)
    }
  }

  enum Outcome {
    case works
    /// It never completes.
    case never
    /// NMDeviceStateReason.
    case fails(UInt32)
    /// The error's name.
    case refused(String)
  }

  struct Active {
    var path: String
    var profile: String
    var id: String
    var uuid: String
    var state: UInt32 = 1
  }

  struct State {
    var points: [Point] = []
    /// Number of snapshots until the active connection is deactivated, and what starts then.
    var leaving = 0
    var coming: (active: Active, looks: Int)?
    var refusesScans = false
    /// Number of scans after which a second, idle device finds the access points.
    var spare: Int?
    /// The device of the last join.
    var joining: String?
    /// An access point that is found only after this many scans.
    var late: (point: Point, after: Int)?
    var scans = 0
    var outcome = Outcome.works
    var hasDevice = true
    var isOn = true
    /// The reason of a failed activation, until it is signalled.
    var failure: UInt32?
    /// Profiles and their names.
    var profiles = ["/org/freedesktop/NetworkManager/Settings/1": "Home \"5\""]
    var active: Active? = Active(
      path: "/org/freedesktop/NetworkManager/ActiveConnection/1", profile: "/org/freedesktop/NetworkManager/Settings/1", id: "Home \"5\"",
      uuid: "home", state: 2)
    var volatile: Set<String> = []
    var next = 2
    /// The changes, in order.
    var log: [String] = []
    /// The settings of the last temporary profile.
    var settings: DBusValue?
    var options: [String: DBusValue] = [:]
  }

  static let device = "/org/freedesktop/NetworkManager/Devices/3"
  static let spare = "/org/freedesktop/NetworkManager/Devices/4"
  private static let manager = "org.freedesktop.NetworkManager"
  let state: Mutex<State>
  private let connection = Mutex<DBusConnection?>(nil)

  init(_ bus: TestBus, _ change: (inout State) -> Void = { _ in }) throws {
    var initial = State()
    change(&initial)
    state = Mutex(initial)
    let ready = Flag()
    let made = DBusConnection(to: bus.address) { _ in
    } received: { [weak self] message in
      guard let self, message.kind == .call else { return }
      let reply = self.answer(message)
      if let reason = self.state.withLock({ state in state.failure.take() }) {
        let signal = DBusMessage.signal(
          Self.device, Self.manager + ".Device", "StateChanged", [.uint32(120), .uint32(50), .uint32(reason)])
        self.connection.withLock { $0 }?.send(signal)
      }
      self.connection.withLock { $0 }?.send(reply)
    } ended: { [weak self] _ in
      self?.connection.withLock { $0 = nil }
    }
    connection.withLock { $0 = made }
    made.call(.call(DBusDaemon.name, DBusDaemon.path, DBusDaemon.name, "RequestName", [.string(Self.manager), .uint32(4)])) { _ in
      ready.raise()
    }
    try #require(ready.wait())
  }

  deinit { connection.withLock { $0 }?.close() }

  var log: [String] { state.withLock { $0.log } }
  var active: String? { state.withLock { $0.active?.id } }
  var profiles: [String] { state.withLock { $0.profiles.values.sorted() } }

  private func answer(_ call: DBusMessage) -> DBusMessage {
    state.withLock { state in
      switch call.member {
      case "GetManagedObjects": return call.reply([state.snapshot()])
      case "RequestScan":
        if state.refusesScans { return call.failure(Self.manager + ".PermissionDenied", "Not authorized to scan.") }
        state.scans += 1
        if let late = state.late, state.scans >= late.after {
          state.points.append(late.point)
          state.late = nil
        }
        return call.reply()
      case "AddAndActivateConnection2":
        if case .refused(let name) = state.outcome { return call.failure(name, "Not authorized to control networking.") }
        return call.reply(state.join(call.body))
      case "ActivateConnection":
        let profile = call.body.first?.string ?? ""
        guard let id = state.profiles[profile] else { return call.failure(Self.manager + ".UnknownConnection", "no such profile") }
        state.log.append("activate \(id)")
        return call.reply([.path(state.activate(profile, id: id, uuid: id))])
      case "DeactivateConnection":
        state.log.append("deactivate \(state.active?.id ?? "-")")
        state.leave()
        return call.reply()
      case "Delete":
        let id = state.profiles.removeValue(forKey: call.path ?? "")
        state.log.append("delete \(id ?? "-")")
        return call.reply()
      default: return call.failure("org.freedesktop.DBus.Error.UnknownMethod", "\(call.member ?? "")")
      }
    }
  }
}

extension MockNetworkManager.State {
  mutating func join(_ body: [DBusValue]) -> [DBusValue] {
    settings = body.first
    options = body.last?.dictionary ?? [:]
    joining = body.dropFirst().first?.string
    let connection = body.first?.dictionary?["connection"]?.dictionary
    let profile = "/org/freedesktop/NetworkManager/Settings/\(next)"
    let id = connection?["id"]?.string ?? ""
    log.append("join \(id)")
    profiles[profile] = id
    volatile.insert(profile)
    let path = activate(profile, id: id, uuid: connection?["uuid"]?.string ?? "")
    return [.path(profile), .path(path), .properties([:])]
  }

  mutating func activate(_ profile: String, id: String, uuid: String) -> String {
    next += 1
    let path = "/org/freedesktop/NetworkManager/ActiveConnection/\(next)"
    let new = MockNetworkManager.Active(path: path, profile: profile, id: id, uuid: uuid)
    if leaving > 0, active != nil {
      active?.state = 3
      coming = (new, leaving)
    } else {
      leave()
      active = new
    }
    return path
  }

  mutating func leave() {
    if let active, volatile.remove(active.profile) != nil { profiles[active.profile] = nil }
    active = nil
  }

  /// All objects; a pending activation completes or fails with the next call.
  mutating func snapshot() -> DBusValue {
    let manager = "org.freedesktop.NetworkManager"
    var objects: [(String, [String: [String: DBusValue]])] = [
      ("/org/freedesktop/NetworkManager", [manager: ["WirelessEnabled": .bool(isOn)]])
    ]
    for (number, point) in points.enumerated() {
      let properties: [String: DBusValue] = [
        "Ssid": .bytes(point.ssid), "Frequency": .uint32(point.frequency), "Strength": .byte(point.strength), "Flags": .uint32(point.flags),
        "WpaFlags": .uint32(0), "RsnFlags": .uint32(point.rsn),
      ]
      objects.append(("\(manager.path)/AccessPoint/\(number)", [manager + ".AccessPoint": properties]))
    }
    for profile in profiles.keys { objects.append((profile, [manager + ".Settings.Connection": ["Unsaved": .bool(true)]])) }
    for active in [active, coming?.active].compactMap(\.self) {
      let state = active.path == coming?.active.path ? 0 : active.state
      let properties: [String: DBusValue] = [
        "Connection": .path(active.profile), "Id": .string(active.id), "Uuid": .string(active.uuid), "State": .uint32(state),
      ]
      objects.append((active.path, [manager + ".Connection.Active": properties]))
    }
    if hasDevice {
      let device: [String: DBusValue] = [
        "State": .uint32(active == nil ? 30 : 100),
        "ActiveConnection": .path(active?.path ?? "/"),
      ]
      let paths = points.indices.map { DBusValue.path("\(manager.path)/AccessPoint/\($0)") }
      let wireless: [String: DBusValue] = ["AccessPoints": .array(of: "o", paths), "LastScan": .int64(Int64(scans))]
      objects.append((MockNetworkManager.device, [manager + ".Device": device, manager + ".Device.Wireless": wireless]))
    }
    if let spare {
      let paths = scans < spare ? [] : points.indices.map { DBusValue.path("\(manager.path)/AccessPoint/\($0)") }
      let wireless: [String: DBusValue] = ["AccessPoints": .array(of: "o", paths), "LastScan": .int64(Int64(scans))]
      let device: [String: DBusValue] = ["State": .uint32(30), "ActiveConnection": .path("/")]
      objects.append((MockNetworkManager.spare, [manager + ".Device": device, manager + ".Device.Wireless": wireless]))
    }
    progress()
    return .array(
      of: "{oa{sa{sv}}}",
      objects.map { path, interfaces in
        .entry(.path(path), .array(of: "{sa{sv}}", interfaces.map { .entry(.string($0.key), .properties($0.value)) }))
      })
  }

  private mutating func progress() {
    if let (next, looks) = coming {
      coming = looks > 1 ? (next, looks - 1) : nil
      guard coming == nil else { return }
      leave()
      active = next
      return
    }
    guard let active, active.state == 1 else { return }
    switch outcome {
    case .fails(let why) where volatile.contains(active.profile):
      failure = why
      leave()
    case .never where volatile.contains(active.profile): break
    default: self.active?.state = 2
    }
  }
}

extension String {
  /// As the path of an object.
  fileprivate var path: String { "/" + split(separator: ".").joined(separator: "/") }
}

/// A flag that one thread raises and another waits for.
final class Flag: Sendable {
  private let raised = Mutex(false)

  func raise() { raised.withLock { $0 = true } }
  var isRaised: Bool { raised.withLock { $0 } }

  func wait() -> Bool {
    for _ in 0..<10_000 {
      if isRaised { return true }
      usleep(1_000)
    }
    return false
  }
}

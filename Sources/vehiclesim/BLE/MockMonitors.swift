// The advertisement monitors of the mock BlueZ. A client registers an application with monitors. Each monitor gets a call for each matching
// advertisement, although the client has not started a discovery.
// Source: org.bluez.AdvertisementMonitor(5), org.bluez.AdvertisementMonitorManager(5), src/adv_monitor.c (5.66).

import DBus
import Protocols

final class MockMonitors {
  static let managerInterface = "org.bluez.AdvertisementMonitorManager1"
  private static let interface = "org.bluez.AdvertisementMonitor1"

  private struct Application {
    let client: String
    let root: String
    /// The patterns of its active monitors, by path. A pattern is the type of an AD structure, and the bytes at an offset in it.
    var monitors: [String: [(start: Int, type: Int, content: [UInt8])]] = [:]
  }

  private let bus: DBusClient
  /// Whether monitors are released, as if the controller had no room for them.
  private let isFull: Bool
  private var applications: [Application] = []
  /// Called when monitors may have been activated or removed.
  var changed: () -> Void = {}

  init(_ bus: DBusClient, isFull: Bool) {
    self.bus = bus
    self.isFull = isFull
  }

  var isActive: Bool { applications.contains { !$0.monitors.isEmpty } }

  /// Handles a call to the manager.
  func handle(_ call: DBusMessage) {
    guard let client = call.sender, let root = call.body.first?.string else { return reject(call, "InvalidArguments") }
    let index = applications.firstIndex { $0.client == client && $0.root == root }
    switch (call.member, index) {
    case ("RegisterMonitor", nil): register(call, client, root)
    case ("RegisterMonitor", _?): reject(call, "AlreadyExists")
    case ("UnregisterMonitor", let index?):
      for path in applications.remove(at: index).monitors.keys { send(client, path, "Release") }
      bus.send(call.reply())
      changed()
    case ("UnregisterMonitor", nil): reject(call, "DoesNotExist")
    default: reject(call, "NotSupported")
    }
  }

  /// Removes the applications of a client that has left the bus.
  func clientEnded(_ client: String) {
    applications.removeAll { $0.client == client }
    changed()
  }

  /// Reports a device to the monitors that match its advertisement. `structures` are the AD structures of the advertisement, by type.
  func report(_ peer: String, _ structures: [Int: [UInt8]]) {
    for application in applications {
      for (path, patterns) in application.monitors {
        let matches = patterns.contains { structures[$0.type]?.dropFirst($0.start).starts(with: $0.content) ?? false }
        if matches { send(application.client, path, "DeviceFound", [.path(peer)]) }
      }
    }
  }

  private func register(_ call: DBusMessage, _ client: String, _ root: String) {
    bus.call(.call(client, root, DBusDaemon.objectManager, "GetManagedObjects")) { [unowned self] result in
      guard case .success(let message) = result, let objects = message.body.first?.dictionary else { return reject(call, "Failed") }
      var application = Application(client: client, root: root)
      var released: [String] = []
      for (path, interfaces) in objects {
        guard let properties = interfaces.dictionary?[Self.interface]?.dictionary, path.hasPrefix(root) else { continue }
        if !isFull, properties["Type"]?.string == "or_patterns", let patterns = Self.patterns(properties["Patterns"]) {
          application.monitors[path] = patterns
        } else {
          released.append(path)
        }
      }
      bus.send(call.reply())
      applications.append(application)
      application.monitors.keys.forEach { send(client, $0, "Activate") }
      released.forEach { send(client, $0, "Release") }
      changed()
    }
  }

  /// Parses patterns of type `a(yyay)`. Returns nil if there are none, or one is invalid.
  private static func patterns(_ value: DBusValue?) -> [(start: Int, type: Int, content: [UInt8])]? {
    guard case .array("(yyay)", let elements)? = value?.unwrapped, (1...16).contains(elements.count) else { return nil }
    let patterns = elements.compactMap { element -> (start: Int, type: Int, content: [UInt8])? in
      guard case .structure(let members) = element, members.count == 3, let start = members[0].int, let type = members[1].int,
        let content = members[2].bytes, !content.isEmpty, start + content.count <= 31
      else { return nil }
      return (start, type, content)
    }
    return patterns.count == elements.count ? patterns : nil
  }

  private func send(_ client: String, _ path: String, _ member: String, _ body: [DBusValue] = []) {
    var message = DBusMessage.call(client, path, Self.interface, member, body)
    message.expectsReply = false
    bus.send(message)
  }

  private func reject(_ call: DBusMessage, _ error: String) { bus.send(call.failure("org.bluez.Error.\(error)", "")) }
}

// The D-Bus objects of BlueZ: paths, interfaces, properties, and the signals for each change.

import DBus

struct ObjectTree {
  private(set) var objects: [String: [String: [String: DBusValue]]] = [:]
  /// Sends a signal.
  var emit: (DBusMessage) -> Void = { _ in }

  subscript(path: String, interface: String, name: String) -> DBusValue? { objects[path]?[interface]?[name] }

  mutating func add(_ path: String, _ interfaces: [String: [String: DBusValue]]) {
    objects[path] = interfaces
    emit(.signal("/", DBusDaemon.objectManager, "InterfacesAdded", [.path(path), Self.value(interfaces)]))
  }

  /// Removes an object and its descendants, descendants first.
  mutating func remove(_ path: String) {
    for removed in objects.keys.filter({ $0 == path || $0.hasPrefix(path + "/") }).sorted(by: >) {
      let interfaces = objects.removeValue(forKey: removed)?.keys.sorted() ?? []
      emit(.signal("/", DBusDaemon.objectManager, "InterfacesRemoved", [.path(removed), .strings(interfaces)]))
    }
  }

  /// Sets a property, or removes it if `value` is nil, and emits PropertiesChanged.
  mutating func set(_ path: String, _ interface: String, _ name: String, _ value: DBusValue?) {
    guard objects[path]?[interface] != nil else { return }
    objects[path]?[interface]?[name] = value
    let changed = value.map { [name: $0] } ?? [:]
    emit(
      .signal(
        path, DBusDaemon.properties, "PropertiesChanged", [.string(interface), .properties(changed), .strings(value == nil ? [name] : [])]))
  }

  /// All objects, of type `a{oa{sa{sv}}}`.
  var all: DBusValue {
    .array(of: "{oa{sa{sv}}}", objects.sorted { $0.key < $1.key }.map { .entry(.path($0.key), Self.value($0.value)) })
  }

  private static func value(_ interfaces: [String: [String: DBusValue]]) -> DBusValue {
    .array(of: "{sa{sv}}", interfaces.sorted { $0.key < $1.key }.map { .entry(.string($0.key), .properties($0.value)) })
  }
}

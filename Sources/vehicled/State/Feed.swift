// A feed is shared by the watchers of the same references and devices, so that changes are encoded once for all of them.

import Protocols

@Loop final class Feed {
  /// The references of the watchers, as `device.property`; nil if they watch all properties.
  let references: [String]?
  /// The devices that the watchers may see; nil if they may see all.
  let devices: Set<String>?
  var watchers: [Watcher] = []
  /// The selected positions in each device's schema. Not used if `references` is nil.
  private var selected: [ObjectIdentifier: [Bool]] = [:]
  /// Buffers of `publish`, reused to avoid allocations.
  private var body: [UInt8] = []
  private var indexes: [Int] = []

  init(references: [String]?, of devices: Set<String>?) {
    self.references = references
    self.devices = devices
  }

  /// Resolves the references against the current schemas. A device that no longer has a property of the references remains covered, so
  /// that its watchers get its new schema. Unknown devices are skipped.
  func resolveReferences(in hub: DeviceHub) {
    guard let references else { return }
    selected = [:]
    for reference in references {
      let names = reference.split(separator: ".", maxSplits: 1)
      guard let state = try? hub.state(of: String(names[0])) else { continue }
      let id = ObjectIdentifier(state)
      if selected[id] == nil { selected[id] = Array(repeating: false, count: state.schema.properties.count) }
      if let index = state.index(of: String(names[1])) { selected[id]?[index] = true }
    }
  }

  func covers(_ state: DeviceState) -> Bool {
    references == nil ? devices?.contains(state.device.name) ?? true : selected[ObjectIdentifier(state)] != nil
  }

  /// The selected positions of a device; nil if all are selected.
  func selection(of state: DeviceState) -> [Bool]? {
    references == nil ? nil : selected[ObjectIdentifier(state)] ?? []
  }

  /// Sends the selected changes of this turn to every watcher.
  func publish(_ state: DeviceState, at boot: Int64) {
    if references == nil {
      guard covers(state) else { return }
      indexes.removeAll(keepingCapacity: true)
      indexes.append(contentsOf: state.changed)
    } else {
      guard let selected = selected[ObjectIdentifier(state)] else { return }
      indexes.removeAll(keepingCapacity: true)
      for index in state.changed where index < selected.count && selected[index] { indexes.append(index) }
    }
    guard !indexes.isEmpty else { return }
    body.removeAll(keepingCapacity: true)
    state.write("changes", indexes, at: boot, to: &body)
    for watcher in watchers { watcher.notify(changes: body, indexes, of: state) }
  }
}

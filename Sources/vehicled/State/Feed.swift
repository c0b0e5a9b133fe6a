// Those who watch the same references share a feed: what changed is encoded once, whoever many they are.

import Protocols

@Loop final class Feed {
  /// What its watchers asked for; nil: everything.
  let references: [String]?
  var watchers: [Watcher] = []
  /// For each device: which positions of its schema are chosen. Not used when everything is.
  private var chosen: [ObjectIdentifier: [Bool]] = [:]
  private var body: [UInt8] = []
  private var indexes: [Int] = []

  init(references: [String]?) {
    self.references = references
  }

  /// Works out what the references mean now. A reference that means nothing for the moment is silent.
  func select(in board: Board) {
    guard let references else { return }
    chosen = [:]
    for reference in references {
      guard let (state, index) = try? board.resolve(reference) else { continue }
      chosen[ObjectIdentifier(state), default: Array(repeating: false, count: state.schema.properties.count)][index] = true
    }
  }

  func covers(_ state: DeviceState) -> Bool {
    references == nil || chosen[ObjectIdentifier(state)] != nil
  }

  /// The chosen positions of a device, or nil for all.
  func selection(of state: DeviceState) -> [Bool]? {
    references == nil ? nil : chosen[ObjectIdentifier(state)] ?? []
  }

  /// Tells every watcher what changed in this turn, as far as they asked for it.
  func tell(_ state: DeviceState, at boot: Int64) {
    if references == nil {
      indexes.removeAll(keepingCapacity: true)
      indexes.append(contentsOf: state.changed)
    } else {
      guard let chosen = chosen[ObjectIdentifier(state)] else { return }
      indexes.removeAll(keepingCapacity: true)
      for index in state.changed where index < chosen.count && chosen[index] { indexes.append(index) }
    }
    guard !indexes.isEmpty else { return }
    body.removeAll(keepingCapacity: true)
    state.write("changes", indexes, at: boot, to: &body)
    for watcher in watchers { watcher.tell(changes: body, indexes, of: state) }
  }
}

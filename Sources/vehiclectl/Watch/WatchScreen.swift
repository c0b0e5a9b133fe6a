// The full-screen view of devices and their values: the model and what the user has chosen.

import Protocols
import Varlink

struct WatchScreen: LiveView {
  typealias Method = Contract.Watch

  private let units: Units
  private var model: WatchModel
  private var view: WatchView
  /// Requests the schema of a device, on another connection.
  private let describe: (_ device: String) -> Contract.Schema?
  /// Ages are shown in seconds.
  let lifetime = 1.0

  init(_ units: Units, _ schemas: [Contract.Schema], selecting references: References?, describe: @escaping (String) -> Contract.Schema?) {
    self.units = units
    self.describe = describe
    model = WatchModel(references)
    view = WatchView(showsAll: references?.areExact == true)
    for schema in schemas { model.declare(schema) }
  }

  mutating func apply(_ result: Contract.Watch.Result) -> Bool {
    model.apply(units.converted(result), at: Clock.monotonic, wall: Clock.wall)
    for device in model.takeUndeclared() {
      if let schema = describe(device) { model.declare(schema) }
    }
    return result.hasValues
  }

  mutating func lose(_ notice: String) { model.lose(notice, at: Clock.monotonic) }

  mutating func handle(_ key: KeyPress) -> Bool { view.handle(key, model, at: Clock.monotonic, wall: Clock.wall) }

  mutating func frame(columns: Int, rows: Int) -> Grid? {
    guard model.hasStarted else { return nil }
    let frame = WatchRenderer(model, view, columns: columns, rows: rows, now: Clock.monotonic, wall: Clock.wall)
    view.noteFrame(visible: frame.visible, total: frame.total)
    return frame.grid
  }
}

// Names of VESC fault codes, as in the firmware. Source: mc_fault_code in vedderb/bldc datatypes.h.

enum VESCFault {
  private static let names = [
    "none", "over-voltage", "under-voltage", "drv", "abs-over-current", "over-temp-fet", "over-temp-motor", "gate-driver-over-voltage",
    "gate-driver-under-voltage", "mcu-under-voltage", "booting-from-watchdog-reset", "encoder-spi", "encoder-sincos-below-min-amplitude",
    "encoder-sincos-above-max-amplitude", "flash-corruption", "high-offset-current-sensor-1", "high-offset-current-sensor-2",
    "high-offset-current-sensor-3", "unbalanced-currents", "brk", "resolver-lot", "resolver-dos", "resolver-los",
    "flash-corruption-app-cfg", "flash-corruption-mc-cfg", "encoder-no-magnet", "encoder-magnet-too-strong", "phase-filter",
    "encoder-fault", "lv-output-fault", "encoder-slip", "overspeed", "underspeed", "abs-overspeed",
  ]

  /// The name of a code, or the number of an unknown one.
  static func name(of code: Int) -> String { names.indices.contains(code) ? names[code] : String(code) }
}

// The keys of a page that is a grid with a filter.

export function gridKeys(grid, filter) {
  return {
    j: ['Next row', () => grid.move(1)],
    k: ['Previous row', () => grid.move(-1)],
    G: ['Last row', () => grid.select(grid.rows.length - 1)],
    'g g': ['First row', () => grid.select(0)],
    Enter: ['Open the row', () => grid.openSelected()],
    '/': ['Filter', () => filter.focus()],
    Escape: ['Clear the filter', () => { filter.value = ''; filter.dispatchEvent(new Event('input')); grid.body.focus(); }],
  };
}
